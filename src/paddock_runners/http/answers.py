"""Answers of an agent behind a URL: a JSON object, server-sent events, AG-UI, or plain text. Pure."""

import json
from collections.abc import Iterator
from typing import Any

from paddock_runners.toolkit.values import listing, mapping
from paddock_sdk import Result, delta, failed, message, step_finished, step_started, tool_completed, tool_started

TEXT_KEYS = ("delta", "text", "content", "answer", "output", "response", "reply")
BROKEN_OFF = "the agent broke off in the middle of its answer: its events ended without a RUN_FINISHED or RUN_ERROR"


def text_in(said: object) -> str | None:
    """The words of a JSON answer, wherever agents usually put them."""
    if isinstance(said, str):
        return said
    known = mapping(said)
    for key in TEXT_KEYS:
        if isinstance(text := known.get(key), str):
            return text
    for key in ("message", "delta"):
        if key in known:
            return text_in(known[key])
    if choices := listing(known.get("choices")):
        return text_in(choices[0])
    messages = listing(known.get("messages"))
    return text_in(messages[-1]) if messages else None


class EventsInWords:
    """Turns server-sent data, one after the other, into results. The whole text is in `text`."""

    def __init__(self) -> None:
        self.text = ""
        self.ended: Result | None = None
        self._arguments: dict[str, tuple[str, str]] = {}
        self._said_anything = self._spoke_ag_ui = False
        self._finished = True
        """No AG-UI event came, or the one that says that all was said."""

    def last(self) -> Iterator[Result]:
        """Results that follow from the end of the stream."""
        if not self._finished:
            yield failed("http.broken_off", BROKEN_OFF, retryable=True)
        elif self.text:
            yield message(self.text)
        elif not (self._said_anything or self._spoke_ag_ui):
            yield failed("http.bad_answer", "the agent's answer has no text in it: its events said nothing")

    def read(self, data: str) -> Iterator[Result]:
        if data.strip() in {"", "[DONE]"}:
            return
        try:
            said: Any = json.loads(data)
        except ValueError:
            said = data
        self._said_anything = self._said_anything or text_in(said) is not None
        kind = mapping(said).get("type")
        if isinstance(kind, str) and kind.isupper():
            yield from self._ag_ui(kind, mapping(said))
        elif text := text_in(said):
            yield self._more(text)

    def _more(self, text: str) -> Result:
        self.text += text
        return delta(text)

    def _ag_ui(self, kind: str, said: dict[str, Any]) -> Iterator[Result]:
        if not self._spoke_ag_ui or kind in {"RUN_STARTED", "RUN_FINISHED"}:
            self._finished = kind == "RUN_FINISHED"
        self._spoke_ag_ui = True
        match kind:
            case "STEP_STARTED":
                yield step_started(str(said.get("stepName")))
            case "STEP_FINISHED":
                yield step_finished(str(said.get("stepName")))
            case "TEXT_MESSAGE_CONTENT" | "TEXT_MESSAGE_CHUNK" if said.get("delta"):
                yield self._more(str(said["delta"]))
            case "TEXT_MESSAGE_END" if self.text:
                yield message(self.text)
                self.text = ""
            case "RUN_ERROR":
                self.ended = failed(str(said.get("code") or "http.agent_failed"), str(said.get("message")))
            case _:
                yield from self._tool(kind, str(said.get("toolCallId") or ""), said)

    def _tool(self, kind: str, call_id: str, said: dict[str, Any]) -> Iterator[Result]:
        match kind:
            case "TOOL_CALL_START":
                self._arguments[call_id] = (str(said.get("toolCallName")), "")
            case "TOOL_CALL_ARGS" if call_id in self._arguments:
                name, arguments = self._arguments[call_id]
                self._arguments[call_id] = (name, arguments + str(said.get("delta") or ""))
            case "TOOL_CALL_END" if call_id in self._arguments:
                name, arguments = self._arguments[call_id]
                yield tool_started(call_id, name, _parameters(arguments))
            case "TOOL_CALL_RESULT" if call_id in self._arguments:
                yield tool_completed(call_id, self._arguments.pop(call_id)[0], result=said.get("content"))
            case _:
                return


def _parameters(arguments: str) -> dict[str, Any] | None:
    try:
        return mapping(json.loads(arguments)) if arguments else None
    except ValueError:
        return {"arguments": arguments}
