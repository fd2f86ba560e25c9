"""Every host call under every condition: which code is right, and why some cells cannot be. A table, no tests.

`make conformance` writes the table into docs/spec/gate.md.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paddock.rules.access.gate import LOOKED_AT
from paddock_sdk.protocol.host_calls import HOST_CALLS

PAGE = Path(__file__).parents[2] / "docs" / "spec" / "gate.md"
INVALID, NO, LATE = "invalid_argument", "unauthorized", "deadline_exceeded"
TOO_LARGE, TOO_OFTEN, NOT_THERE, OK = "payload_too_large", "rate_limited", "not_found", "ok"

CONDITIONS: Mapping[str, str] = {
    "run_id missing": INVALID,
    "bad types": INVALID,
    "unknown run": NO,
    "ended run": NO,
    "another plugin's run": NO,
    "wrong connection": NO,
    "past deadline": LATE,
    "permission absent": NO,
    "resource not granted": NO,
    "other conversation": NO,
    "scope or consent": NO,
    "over cap": TOO_LARGE,
    "over rate": TOO_OFTEN,
    "foreign or random id": NOT_THERE,
}
"""In the order of the checks: of two that hold at once, the first decides."""

ONE_BODY = ("unknown run", "ended run", "another plugin's run", "wrong connection")
"""Conditions a runner must not be able to tell apart."""

VALID: Mapping[str, Mapping[str, Any]] = {
    "models.invoke": {"model_id": "demo", "messages": [{"role": "user", "content": "hi"}]},
    "models.stream": {"model_id": "demo", "messages": [{"role": "user", "content": "hi"}]},
    "models.rerank": {"model_id": "demo", "query": "q", "documents": ["a", "b"]},
    "tools.get_detail": {"tool_name": "current_time"},
    "tools.call": {"tool_name": "current_time", "parameters": {}},
    "knowledge.retrieve": {"kb_id": "kb-1", "query_text": "q"},
    "history.page": {},
    "history.search": {"query": "q"},
    "events.get": {"event_id": "e-1"},
    "events.page": {},
    "artifacts.metadata": {"artifact_id": "a-1"},
    "artifacts.read_range": {"artifact_id": "a-1"},
    "artifacts.open_stream": {"artifact_id": "a-1"},
    "artifacts.create": {"artifact_type": "file", "content_base64": "aGk="},
    "state.get": {"scope": "conversation", "key": "k"},
    "state.set": {"scope": "conversation", "key": "k", "value": 1},
    "state.delete": {"scope": "conversation", "key": "k"},
    "storage.get": {"area": "plugin", "key": "k"},
    "storage.set": {"area": "plugin", "key": "k", "value_base64": "aGk="},
    "storage.delete": {"area": "plugin", "key": "k"},
    "storage.list": {"area": "plugin"},
    "steering.pull": {},
    "platform.request_action": {"action": "message.edit", "target": {}, "payload": {}},
}
"""A question of the right shape for each call; ids are put in by the house that knows them."""

RANDOM_ID: Mapping[str, str] = {
    "history.page": "before_cursor",
    "events.get": "event_id",
    "events.page": "before_cursor",
    "artifacts.metadata": "artifact_id",
    "artifacts.read_range": "artifact_id",
    "artifacts.open_stream": "artifact_id",
}
"""Calls that name something by an id that may be anybody's."""

_NAMED_BY_GRANT = "what it names must be in the grant, so a foreign or invented name is refused before it is looked up"
_BY_KEY = "keys live inside the run's own scope: one that is not there is an answer (found or deleted: false)"


def why_not(action: str, condition: str) -> str | None:
    """Why this cell cannot be, or None."""
    looked = LOOKED_AT[action]
    match condition:
        case "resource not granted" if looked.kind is None:
            return "it names no model, tool or knowledge base"
        case "other conversation" if not looked.conversation:
            return "it names no conversation; what it reads by id is covered by 'foreign or random id'"
        case "scope or consent" if looked.within is None:
            return "it names no state scope, storage area or platform action"
        case "foreign or random id" if action not in RANDOM_ID:
            return _no_id(action)
        case _:
            return None


def _no_id(action: str) -> str:
    kind = action.partition(".")[0]
    if kind in {"models", "tools", "knowledge", "platform"}:
        return _NAMED_BY_GRANT
    return _BY_KEY if kind in {"state", "storage"} else "it names nothing by id"


def expected(action: str, condition: str) -> str | None:
    """The right code, or None where the cell cannot be."""
    return None if why_not(action, condition) else CONDITIONS[condition]


def page() -> str:
    """The matrix and its reasons, as Markdown."""
    lines = ["| call | " + " | ".join(CONDITIONS) + " |", "| --- |" + " --- |" * len(CONDITIONS)]
    for action in HOST_CALLS:
        cells = [f"`{code}`" if (code := expected(action, condition)) else "-" for condition in CONDITIONS]
        lines.append(f"| `{action}` | " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", "Cells that cannot be:", "", *_reasons()]) + "\n"


def _reasons() -> list[str]:
    found: dict[tuple[str, str], list[str]] = {}
    for condition in CONDITIONS:
        for action in HOST_CALLS:
            if reason := why_not(action, condition):
                found.setdefault((condition, reason), []).append(f"`{action}`")
    return [f"- *{condition}*: {reason}: {', '.join(actions)}." for (condition, reason), actions in found.items()]


def written(text: str) -> str:
    """The text of docs/spec/gate.md with this matrix at its end."""
    before, _, _ = text.partition("| call | run_id missing |")
    return before + page()


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
