"""The rules between AG-UI events, all of them: those the official client enforces and those it does not look at."""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any, cast

import httpx
import msgspec
from ag_ui.core import Event as OfficialEvent
from pydantic import TypeAdapter

from loopback import NO_TLS
from paddock.http_api.ag_ui.event_types import AgUiEvent

official: TypeAdapter[Any] = TypeAdapter(OfficialEvent)
ENDS = {"RUN_FINISHED", "RUN_ERROR"}
KINDS = {"TEXT_MESSAGE": "messageId", "TOOL_CALL": "toolCallId", "REASONING_MESSAGE": "messageId", "STEP": "stepName"}


def assert_official(event: dict[str, Any]) -> None:
    """The official models read it, as the event it says it is, and would write it just so."""
    read = official.validate_python(event)
    assert str(read.type.value) == event["type"]
    assert read.model_dump(mode="json", by_alias=True) == event


def assert_declared(event: dict[str, Any]) -> None:
    """It is one of the events that the API's document describes, and has no field that is not described."""
    read = msgspec.convert(event, AgUiEvent)
    assert event.keys() <= {"type", *(field.encode_name for field in msgspec.structs.fields(read))}, event


class Ordering:
    """Follows one stream of one run, or of several in a row."""

    def __init__(self) -> None:
        self.run: dict[str, Any] | None = None
        self.over: str | None = None
        self.open: dict[str, set[str]] = {kind: set() for kind in KINDS}
        self.used: set[str] = set()
        self.shown: set[str] = set()

    def take(self, event: dict[str, Any]) -> None:
        kind = event["type"]
        assert None not in event.values(), f"null in {event}"
        assert type(event.get("timestamp", 0)) is int
        if kind == "RUN_STARTED":
            assert self.run is None, "a run began inside another"
            self.run, self.over = event, None
            return
        if kind == "RUN_ERROR" and self.over != "RUN_ERROR":
            self._ended(kind)
            return
        assert self.run is not None, f"{kind} outside a run"
        self._within(kind, event)

    def end(self) -> None:
        assert self.over in ENDS, "the stream ended without a last word"

    def _within(self, kind: str, event: dict[str, Any]) -> None:
        if kind == "RUN_FINISHED":
            self._finished(event)
            return
        if kind == "MESSAGES_SNAPSHOT":
            assert event["messages"], "an empty snapshot wipes the chat"
            self.shown |= {call["id"] for message in event["messages"] for call in message.get("toolCalls", ())}
        if kind == "TOOL_CALL_RESULT":
            assert event["messageId"] not in self.used
            self.used.add(event["messageId"])
            assert self.run is not None
            assert isinstance(event["content"], str) or "protocolVersion" in self.run
        family, _, part = kind.rpartition("_")
        if family in KINDS and part != "RESULT":
            self._piece(family, part, event)

    def _piece(self, family: str, part: str, event: dict[str, Any]) -> None:
        name, open_ones = event[KINDS[family]], self.open[family]
        if part in {"START", "STARTED"}:
            assert name not in open_ones, f"{family} {name} opened twice"
            if family == "TEXT_MESSAGE":
                assert name not in self.used, f"message {name} began again"
                self.used.add(name)
            if family == "TOOL_CALL":
                self.shown.add(name)
            open_ones.add(name)
            return
        assert name in open_ones, f"{family} {name} is not open"
        if part in {"END", "FINISHED"}:
            open_ones.remove(name)
        else:
            assert event["delta"] != "", "an empty delta kills old clients"

    def _finished(self, event: dict[str, Any]) -> None:
        assert self.run is not None
        assert [event[name] for name in ("threadId", "runId")] == [self.run[name] for name in ("threadId", "runId")]
        assert not any(self.open.values()), f"left open: {self.open}"
        outcome = event.get("outcome", {})
        if "protocolVersion" not in self.run:
            assert outcome.get("type") != "cancelled"
            assert "pendingToolCallIds" not in outcome
        for interrupt in outcome.get("interrupts", ()):
            assert interrupt.get("toolCallId") in self.shown | {None}, "a question about a call that is not shown"
        self._ended("RUN_FINISHED")

    def _ended(self, kind: str) -> None:
        self.run, self.over = None, kind
        for open_ones in self.open.values():
            open_ones.clear()


def assert_ordered(events: list[dict[str, Any]]) -> None:
    """One whole run."""
    ordering = Ordering()
    for event in events:
        ordering.take(event)
    ordering.end()
    assert sum(event["type"] in {"RUN_STARTED", *ENDS} for event in events) == 2


def events_in(body: bytes) -> list[dict[str, Any]]:
    """The events of the whole frames in a body."""
    assert b"\r" not in body, "lines end with LF"
    lines = (line for frame in body.split(b"\n\n")[:-1] for line in frame.split(b"\n"))
    return [json.loads(line[6:]) for line in lines if line.startswith(b"data: ")]


class Overheard(httpx.AsyncHTTPTransport):
    """A client's way to the host on which every stream of runs is held against the rules, whole or cut."""

    def __init__(self) -> None:
        super().__init__(verify=NO_TLS)
        self.count = 0
        self.wrong: list[str] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await super().handle_async_request(request)
        streams = response.headers.get("content-type") == "text/event-stream"
        if streams and "/sessions/" not in request.url.path:
            stream = cast("httpx.AsyncByteStream", response.stream)
            response.stream = Tee(stream, lambda body, whole: self._judge(request.url.path, body, whole=whole))
        return response

    def _judge(self, path: str, body: bytes, *, whole: bool) -> None:
        try:
            events = events_in(body)
            if not events or events[0]["type"] not in {"RUN_STARTED", "RUN_ERROR"}:
                return  # from somewhere in the middle
            self.count += 1
            ordering = Ordering()
            for event in events:
                assert_declared(event)
                if "protocolVersion" in events[0] or '"binary"' not in str(event.get("messages")).replace("'", '"'):
                    assert_official(event)  # files in messages are told to 0.x as 0.x knew them
                ordering.take(event)
            if whole:
                ordering.end()
        except (AssertionError, ValueError) as error:
            self.wrong.append(f"{path}: {error}")


class Tee(httpx.AsyncByteStream):
    def __init__(self, stream: httpx.AsyncByteStream, judge: Callable[[bytes, bool], None]) -> None:
        self._stream = stream
        self._judge = judge
        self._body = bytearray()
        self._whole = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            self._body.extend(piece)
            yield piece
        self._whole = True

    async def aclose(self) -> None:
        await self._stream.aclose()
        self._judge(bytes(self._body), self._whole)
