"""Turn the output of a harness into results: text once, calls with a beginning and an end. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from paddock_runners.harness.heard import Piece, ToolBegan, ToolEnded, Whole
from paddock_sdk import Result, delta, message, tool_completed, tool_started

MAX_RESULT_CHARACTERS = 100_000
MAX_PARAMETER_CHARACTERS = 100_000
ENDED_WITHOUT_ANSWER = "the turn ended before the tool answered"


class Narration:
    """Tells one turn. The text of a stretch is told in pieces and then once whole, never twice."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._open: dict[str, tuple[str, str]] = {}
        """Calls that have no end yet: the harness's id to ours and the tool's name."""
        self._used: set[str] = set()
        self._closed: set[str] = set()
        """Calls whose end was told; a harness may say it once more."""

    def tell(self, heard: Piece | Whole | ToolBegan | ToolEnded) -> Iterator[Result]:
        match heard:
            case Piece(text):
                if text:
                    self._pieces.append(text)
                    yield delta(text)
            case Whole(text):
                self._pieces.clear()
                if text.strip():
                    yield message(text)
            case ToolBegan():
                yield from self.pause()
                yield from self._began(heard)
            case ToolEnded():
                yield from self._ended(heard)

    def pause(self) -> Iterator[Result]:
        """A stretch of text is over: harnesses that never say the whole of it get it said here."""
        text = "".join(self._pieces)
        self._pieces.clear()
        if text.strip():
            yield message(text)

    def end(self) -> Iterator[Result]:
        """Nothing stays half told."""
        yield from self.pause()
        for call_id in list(self._open):
            yield from self._ended(ToolEnded(call_id, error=ENDED_WITHOUT_ANSWER))

    def _began(self, call: ToolBegan) -> Iterator[Result]:
        if call.call_id in self._open:
            return
        call_id, number = call.call_id or "call", 1
        while call_id in self._used:  # some number their calls afresh in every answer
            number += 1
            call_id = f"{call.call_id or 'call'}-{number}"
        self._used.add(call_id)
        self._closed.discard(call.call_id)
        self._open[call.call_id] = call_id, call.name
        yield tool_started(call_id, call.name, _bounded(call.parameters))

    def _ended(self, call: ToolEnded) -> Iterator[Result]:
        if call.call_id not in self._open:
            if not call.name or call.call_id in self._closed:
                return
            yield from self._began(ToolBegan(call.call_id, call.name))
        call_id, name = self._open.pop(call.call_id)
        self._closed.add(call.call_id)
        if call.error is not None:
            yield tool_completed(call_id, name, error=_cut(call.error))
        else:
            yield tool_completed(call_id, name, result=_cut_value(call.result))


def _cut(text: str) -> str:
    """Text people can be shown; the harness itself has all of it."""
    if len(text) <= MAX_RESULT_CHARACTERS:
        return text
    return f"{text[:MAX_RESULT_CHARACTERS]}\n(cut here: {len(text)} characters in all; the agent has seen them)"


def _cut_value(result: Any) -> Any:
    return _cut(result) if isinstance(result, str) else result


def _bounded(parameters: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Parameters to be shown; a whole file written by a tool is cut like its output."""
    if parameters is None:
        return None
    return {
        name: f"{value[:MAX_PARAMETER_CHARACTERS]}…"
        if isinstance(value, str) and len(value) > MAX_PARAMETER_CHARACTERS
        else value
        for name, value in parameters.items()
    }
