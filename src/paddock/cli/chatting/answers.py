"""Show the events of a turn to a person: the answer as it streams, and quietly what happens beside it."""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TextIO, cast

from paddock.cli.output import harmless, write

DIM, RED, BOLD, PLAIN = "\x1b[2m", "\x1b[31m", "\x1b[1m", "\x1b[0m"


def colours_wanted(stream: TextIO, environ: Mapping[str, str]) -> bool:
    return stream.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def painted(text: str, colour: str, *, on: bool) -> str:
    return f"{colour}{text}{PLAIN}" if on else text


@dataclass(frozen=True, slots=True)
class TurnEnding:
    """The end of a turn: completed, cancelled, or failed with a text."""

    cancelled: bool = False
    failure: str = ""
    asks_to_hand_over: bool = False


def ending(event: Mapping[str, Any]) -> TurnEnding | None:
    """Return the end of the turn if this event ends it. Either dialect says `cancelled` in its own way."""
    if event.get("type") == "RUN_FINISHED":
        outcome = event.get("outcome")
        kind = cast("dict[str, Any]", outcome).get("type") if isinstance(outcome, dict) else outcome
        return TurnEnding(cancelled=kind == "cancelled")
    if event.get("type") != "RUN_ERROR":
        return None
    code, message = (harmless(str(event.get(name, ""))) for name in ("code", "message"))  # both are the runner's words
    if code == "cancelled":
        return TurnEnding(cancelled=True)
    return TurnEnding(failure=f"The run failed: {message or 'no reason given'}" + (f" ({code})" if code else ""))


class JsonPrinter:
    """Prints every event as one line of JSON."""

    def show(self, event: Mapping[str, Any]) -> None:
        write(json.dumps(event, ensure_ascii=False, separators=(",", ":")) + "\n")

    def note(self, text: str) -> None:
        """Standard output belongs to the events alone."""
        sys.stderr.write(f"[{harmless(text)}]\n")


@dataclass(slots=True)
class AnswerPrinter:
    """Prints one turn for a person."""

    colours: bool = False
    out: TextIO = field(default_factory=lambda: sys.stdout)
    side: TextIO = field(default_factory=lambda: sys.stderr)
    _open_line: bool = False

    def show(self, event: Mapping[str, Any]) -> None:
        match event.get("type"):
            case "TEXT_MESSAGE_CONTENT":
                self._say(str(event.get("delta", "")))
            case "TEXT_MESSAGE_END":
                self._end_line()
            case "TOOL_CALL_START":
                self.note(f"using {event.get('toolCallName', 'a tool')}")
            case "CUSTOM":
                self._custom(str(event.get("name")), event.get("value"))
            case "RUN_ERROR" | "RUN_FINISHED":
                self._end_line()
            case _:
                pass

    def _end_line(self) -> None:
        if self._open_line:
            write("\n", self.out)
            self._open_line = False

    def _say(self, text: str) -> None:
        shown = harmless(text) if self.out.isatty() else text
        write(shown, self.out)
        self._open_line = not shown.endswith("\n") if shown else self._open_line

    def note(self, text: str) -> None:
        """Something beside the answer. On a terminal it gets a line of its own; the answer in a pipe stays whole."""
        if self.out.isatty():
            self._end_line()
        self.side.write(painted(f"[{harmless(text)}]", DIM, on=self.colours) + "\n")
        self.side.flush()

    def _custom(self, name: str, value: object) -> None:
        details = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        if name == "paddock.turn.steered":
            self.note("the agent takes this in")
        elif name == "paddock.turn.queued":
            self.note("waiting for the turn before this one")
        elif name == "paddock.message.revised":
            self._end_line()
            self.note("the agent corrected its answer")
            self._say(str(details.get("content", "")))
            self._end_line()
