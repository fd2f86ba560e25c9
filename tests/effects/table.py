"""Every kind of host call that has an effect, under everything that can go wrong. A table, no tests.

`python -m effects.table` (in tests/) prints the table that docs/spec/gate.md shows.
"""

from collections.abc import Mapping

TOOLS: Mapping[str, str] = {
    "book": "`tools.call`, a function",
    "book_on_a_thread": "`tools.call`, a function on a thread",
    "book_and_not_stop": "`tools.call`, a function that does not stop",
    "over_stdio__book": "`tools.call`, MCP over stdio",
    "over_http__book": "`tools.call`, MCP over HTTP",
}
MODELS: Mapping[str, str] = {"models.invoke": "`models.invoke`", "models.stream": "`models.stream`"}
WRITES: Mapping[str, str] = {
    "state.set": "`state.set`",
    "storage.set": "`storage.set`",
    "artifacts.create": "`artifacts.create`",
}
OUTSIDE: Mapping[str, str] = {
    "a platform action": "an approved platform action",
    "a message": "a message delivered to a platform",
}
KINDS: Mapping[str, str] = {**TOOLS, **MODELS, **WRITES, **OUTSIDE}

CANCEL, DEADLINE, RUNNER_DIES, SIGTERM = "cancel", "deadline", "the runner dies", "SIGTERM"
KILL = "the host is killed"
FULL_SHORT, FULL_LONG = "disk full for a moment", "disk full for long"
AWAY_SHORT, AWAY_LONG = "database away for 4 s", "database away for 15 s"
SILENT = "database silent for 8 s"
TAKE_OVER = "another host takes over"
HAND_OVER = "SIGTERM, another host goes on"
FAULTS = (
    CANCEL,
    DEADLINE,
    RUNNER_DIES,
    SIGTERM,
    KILL,
    FULL_SHORT,
    FULL_LONG,
    AWAY_SHORT,
    AWAY_LONG,
    SILENT,
    TAKE_OVER,
    HAND_OVER,
)
QUICK = (CANCEL, DEADLINE, RUNNER_DIES, SIGTERM, FULL_SHORT)
"""Those that `make test` strikes with; the others are part of the long set."""

NOT_HEARD = "-"
"""The runner is told nothing: its run is over."""
AND = " and "

_TOOL: Mapping[str, tuple[str, str]] = {
    CANCEL: (NOT_HEARD, "unknown"),
    DEADLINE: (NOT_HEARD, "unknown"),
    RUNNER_DIES: (NOT_HEARD, "unknown"),
    SIGTERM: (NOT_HEARD, "unknown"),
    KILL: (NOT_HEARD, "unknown"),
    FULL_SHORT: ("ok", "completed"),
    FULL_LONG: ("unknown", "completed"),
    AWAY_SHORT: ("ok", "completed"),
    AWAY_LONG: ("unknown", "completed"),
    SILENT: ("ok", "completed"),
    TAKE_OVER: (NOT_HEARD, "unknown"),
    HAND_OVER: (NOT_HEARD, "unknown"),
}
_MODEL: Mapping[str, tuple[str, str]] = {
    CANCEL: (NOT_HEARD, "cancelled"),
    DEADLINE: (NOT_HEARD, "cancelled"),
    RUNNER_DIES: (NOT_HEARD, "cancelled"),
    SIGTERM: (NOT_HEARD, "cancelled"),
    KILL: (NOT_HEARD, "unknown"),
    FULL_SHORT: ("ok", "ok"),
    FULL_LONG: ("ok", "ok"),
    AWAY_SHORT: ("ok", "ok"),
    AWAY_LONG: ("ok", "ok"),
    SILENT: ("ok", "ok"),
    TAKE_OVER: (NOT_HEARD, "cancelled"),
    HAND_OVER: (NOT_HEARD, "cancelled"),
}
_ACTION: Mapping[str, tuple[str, str]] = {
    fault: ("ok", "unknown" if fault in {SIGTERM, KILL, TAKE_OVER, HAND_OVER} else "done") for fault in FAULTS
}
_MESSAGE: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(FAULTS, (NOT_HEARD, "delivered")),
    SIGTERM: (NOT_HEARD, "pending, then delivered, perhaps twice"),
    KILL: (NOT_HEARD, "delivered, perhaps twice"),
    HAND_OVER: (NOT_HEARD, "delivered, perhaps twice"),
}


def cell(kind: str, fault: str) -> tuple[str, str]:
    """What the runner is told, and what the record says of it afterwards."""
    if kind in TOOLS:
        return _TOOL[fault]
    if kind in MODELS:
        return _MODEL[fault]
    if kind in WRITES:
        return ("as it is", "done, or nothing")
    return _ACTION[fault] if kind == "a platform action" else _MESSAGE[fault]


def page() -> str:
    """The table as Markdown."""
    lines = [f"| call | {' | '.join(FAULTS)} |", f"| --- |{' --- |' * len(FAULTS)}"]
    for kind, name in KINDS.items():
        cells = (cell(kind, fault) for fault in FAULTS)
        lines.append(f"| {name} | {' | '.join(f'{told}; {record}' for told, record in cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(page())
