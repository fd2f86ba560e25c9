"""Results of a LangBot runner in our words. One object per run, because pieces add up to a message; no I/O."""

import logging
from collections.abc import Iterator, Mapping
from typing import Any

from paddock_runners.langbot.context import REPLY_TOOL
from paddock_runners.toolkit.values import listing, mapping
from paddock_sdk import Result, completed, delta, failed, message

log = logging.getLogger("paddock.langbot")

INTERACTION = "interaction.requested"
LEVELS = {"debug": logging.DEBUG, "warning": logging.WARNING, "error": logging.ERROR}
AS_THEY_ARE = frozenset({"state.updated", "artifact.created", "action.requested"})
"""Said alike in both protocols."""


class Translation:
    """`read` gives the results that follow from one of theirs; `end` what is left to say when their stream ends."""

    def __init__(self) -> None:
        self._text = ""
        """Pieces that no whole message has settled yet."""
        self.ended = False

    def read(self, said: Mapping[str, Any]) -> Iterator[Result]:
        if self.ended:
            return
        kind, data = str(said.get("type")), mapping(said.get("data"))
        match kind:
            case "message.delta":
                yield from self._piece(mapping(data.get("chunk")))
            case "message.completed":
                yield from self.whole(mapping(data.get("message")).get("content"))
            case "tool.call.started" | "tool.call.completed":
                yield from _tool(kind, data)
            case "run.completed":
                yield from self._completed(data, mapping(said.get("usage")))
            case "run.failed":
                yield from self._failed(data)
            case "processor.log":
                log.log(LEVELS.get(str(data.get("level")), logging.INFO), "%s", str(data.get("text"))[:2000])
            case _:
                yield from self._other(kind, data)

    def end(self) -> Iterator[Result]:
        """A stream that ends without a word about how it went has gone well, over there."""
        if not self.ended:
            yield from self._settle()
            self.ended = True

    # --- words ----------------------------------------------------------------------------------------------

    def whole(self, content: object) -> Iterator[Result]:
        """A finished message: text, or a list of content elements."""
        self._text = ""
        if isinstance(content, str) and content:
            yield message(content)
        elif elements := [element for one in listing(content) if (element := _element(one))]:
            yield message(elements)

    def so_far(self, text: str) -> Iterator[Result]:
        """All the text until now. What was said cannot be taken back: another beginning waits for the whole message."""
        if text.startswith(self._text) and text != self._text:
            piece, self._text = text[len(self._text) :], text
            yield delta(piece)

    def _piece(self, chunk: Mapping[str, Any]) -> Iterator[Result]:
        """A piece; where the running total comes along it counts, because not every runner says pure increments."""
        content, total = _text_of(chunk.get("content")), chunk.get("all_content")
        if isinstance(total, str) and total:
            yield from self.so_far(total)
        elif content:
            self._text += content
            yield delta(content)

    def _settle(self) -> Iterator[Result]:
        """Pieces without a last word become the message they add up to."""
        if self._text:
            yield from self.whole(self._text)

    # --- ends -----------------------------------------------------------------------------------------------

    def _completed(self, data: Mapping[str, Any], usage: Mapping[str, Any]) -> Iterator[Result]:
        content = mapping(data.get("message")).get("content")
        yield from self.whole(content) if content else self._settle()
        self.ended = True
        counted = {name: count for name, count in usage.items() if count is not None}
        yield completed(usage=counted or None)

    def _failed(self, data: Mapping[str, Any]) -> Iterator[Result]:
        self.ended = True
        why = str(data.get("error") or data.get("message") or "the runner gave no reason")
        yield failed(str(data.get("code") or "runner.error"), why, data.get("retryable") is True)

    def _other(self, kind: str, data: Mapping[str, Any]) -> Iterator[Result]:
        if kind == "action.requested" and data.get("action") == INTERACTION:
            yield from self._question(mapping(data.get("payload")))
        elif kind in AS_THEY_ARE:
            told = {key: value for key, value in data.items() if value is not None}
            yield Result(kind, {**told, "value": data.get("value")} if kind == "state.updated" else told)
        else:
            log.warning("langbot: a result of type %r is passed over", kind[:60])

    def _question(self, asked: Mapping[str, Any]) -> Iterator[Result]:
        """No form is shown here. The words meant for places without forms are said; the answer comes as a message."""
        yield from self.whole(str(asked.get("fallback_text") or asked.get("title") or ""))


def _tool(kind: str, data: Mapping[str, Any]) -> Iterator[Result]:
    """Tool calls are shown; a reply is no tool here but the message itself."""
    if data.get("tool_name") != REPLY_TOOL:
        yield Result(kind, {key: value for key, value in data.items() if value is not None})


def _element(said: object) -> dict[str, Any]:
    """A content element with only what is filled."""
    return {key: value for key, value in mapping(said).items() if value is not None}


def _text_of(content: object) -> str:
    if isinstance(content, str):
        return content
    return "".join(str(mapping(one).get("text") or "") for one in listing(content))
