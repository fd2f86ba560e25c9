"""A whole conversation as it happens, over server-sent events: from the reader's place on, without an end.

Says what is meant for front ends, as the messages they are or in AG-UI. Everything comes from the log, so every
reader sees the same, live or later; a reader that goes away ends its own stream and nothing else.
"""

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, cast

import msgspec
import structlog
from msgspec import UNSET, UnsetType
from starlette.types import Receive, Scope, Send

from paddock.host.runs.stored_results import ACTIONS, HINTS
from paddock.host.streams.open_streams import OpenStream
from paddock.host.streams.tails import Entry, Follower
from paddock.http_api.ag_ui.events import SPOKEN_KINDS, AgUiPeer, SignedUrl, frames, is_personal, what_was_said
from paddock.http_api.ag_ui.outputs import Json, custom, mapping
from paddock.http_api.streams.run_stream import HEADERS, KEEP_ALIVE, Cursor, while_read
from paddock.rules.errors import HostError, StorageUnavailableError
from paddock.rules.log.chain import StoredFact
from paddock.rules.session.facts import SYSTEM_SENDER

log = structlog.get_logger(__name__)

Format = Literal["messages", "ag-ui"]
UNSEEN = frozenset({HINTS, ACTIONS})
FOR_FRONT_ENDS = frozenset({"FRONTEND", "BROADCAST"})
DELETED = {"message": "this conversation was deleted"}
CUT = b'"metadata":{"partial":true}'
"""How the end of a message ends that was cut."""

_encode = msgspec.json.Encoder().encode


class SessionEvent(msgspec.Struct):
    """One message of a conversation, as front ends are told it."""

    session_id: str
    event: str
    subtype: str
    sender: str
    target: str | None
    payload: Any
    metadata: Mapping[str, Any]
    time: float
    id: int | UnsetType = UNSET
    turn_id: str | UnsetType | None = UNSET
    trace_id: str | UnsetType | None = UNSET
    tx_id: str | UnsetType | None = UNSET


@dataclass(eq=False)
class SessionStream:
    """The ASGI answer that streams one conversation to one reader."""

    follower: Follower
    thread_id: str
    start: Cursor
    form: Format
    _: KW_ONLY
    place: OpenStream
    keep_alive: float
    is_gone: Callable[[], Awaitable[bool]]
    signed_url: SignedUrl | None = None

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        try:
            await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
            await send({"type": "http.response.body", "body": KEEP_ALIVE, "more_body": True})
            await while_read(self.place, receive, send, self._stream)
        except* (HostError, StorageUnavailableError) as errors:
            # Returning with the body unfinished tells the client that it was cut; its cursor brings it back.
            reason = str(errors.exceptions[0])
            log.warning("stream cut", action="http.stream_cut", session_id=self.thread_id, reason=reason)
        finally:
            self.follower.close()
            self.place.leave()

    async def _stream(self, send: Send) -> None:
        """Send events until the conversation is deleted, and then say so."""
        while True:
            entries = await self.follower.next(self.keep_alive)
            if not entries and (self.follower.gone or await self._was_deleted()):
                await send({"type": "http.response.body", "body": self._deleted(), "more_body": False})
                return
            said = b"".join(piece for entry in entries for piece in self._frames(entry))
            if said or not entries:
                await send({"type": "http.response.body", "body": said or KEEP_ALIVE, "more_body": True})

    async def _was_deleted(self) -> bool:
        """Ask the store whether the conversation was deleted: the message of another host may have been lost."""
        try:
            return await self.is_gone()
        except StorageUnavailableError:
            return False

    def _deleted(self) -> bytes:
        """Make the last event. It has no `id:`, because there is nothing to go on from."""
        if self.form == "ag-ui":
            told = custom(_name("EVENT:SESSION_DELETED"), {"sender": SYSTEM_SENDER, "payload": DELETED})
        else:
            about = (self.thread_id, "EVENT", "SESSION_DELETED", SYSTEM_SENDER, "FRONTEND")
            told = SessionEvent(*about, payload=DELETED, metadata={}, time=time.time())
        return b"data: %b\n\n" % _encode(told)

    def _frames(self, entry: Entry) -> list[bytes]:
        key = f"session:{self.form}:{self.thread_id}"
        said = entry.frames.get(key)
        if said is None:
            make = as_ag_ui if self.form == "ag-ui" else as_message
            said = make(entry.fact, self.thread_id, self.signed_url)
            if not is_personal(entry.fact):
                entry.frames[key] = said
        return said[self.start.k + 1 :] if entry.fact.seq == self.start.seq else said


def as_message(fact: StoredFact, thread_id: str, signed_url: SignedUrl | None = None) -> list[bytes]:
    """One message of the bus, if it is for front ends or somebody said it."""
    event, _, subtype = fact.kind.partition(":")
    if event == "USER_INPUT" and fact.target == "SYSTEM":
        payload, metadata = _said(mapping(fact.read_payload()), signed_url), Json()
        if not payload:
            return []
    elif fact.target not in FOR_FRONT_ENDS:
        return []
    else:
        payload, metadata = _without_values(fact.read_payload(), fact.read_metadata())
    item = SessionEvent(
        id=fact.seq,
        session_id=thread_id,
        event=event,
        subtype=subtype,
        sender=fact.sender,
        target=fact.target,
        turn_id=fact.turn_id,
        trace_id=fact.trace_id,
        tx_id=fact.tx_id,
        payload=payload,
        metadata=metadata,
        time=fact.time,
    )
    return [b"id: 1.%d.0\ndata: %b\n\n" % (fact.seq, _encode(item))]


def _said(payload: Json, signed_url: SignedUrl | None) -> Json:
    message = what_was_said(payload)
    if not message:
        return {}
    content, choice = message["content"], mapping(payload.get("params")).get("payload")
    if isinstance(content, list):
        blocks = [mapping(block) for block in cast("list[object]", content)]
        message = {**message, "content": [_with_address(block, signed_url) for block in blocks]}
    return {"text": payload.get("text"), "message": message, **({"payload": choice} if choice is not None else {})}


def _with_address(block: Json, signed_url: SignedUrl | None) -> Json:
    file_id = str(block.get("id") or "")
    if block.get("type") != "binary" or signed_url is None or not file_id:
        return block
    url = signed_url(file_id)
    return block if url is None else {**block, "url": url}


def _without_values(payload: Any, metadata: Mapping[str, Any]) -> tuple[Any, Mapping[str, Any]]:
    """Remove values that are the runner's own, and the actions behind buttons, which are the host's."""
    data = mapping(mapping(payload).get("data"))
    if UNSEEN & data.keys():
        return {**payload, "data": {name: value for name, value in data.items() if name not in UNSEEN}}, metadata
    if mapping(payload).get("type") != "state.updated":
        return payload, metadata
    return {"type": "state.updated", "data": {name: data.get(name) for name in ("scope", "key")}}, {}


def as_ag_ui(fact: StoredFact, thread_id: str, signed_url: SignedUrl | None = None) -> list[bytes]:
    """Frames of a fact in AG-UI 1.0; a run is named by its taskId, and what has no word of its own is CUSTOM."""
    peer = AgUiPeer("1", thread_id, fact.turn_id or "", "session", follows_all=True, signed_url=signed_url)
    if fact.kind in SPOKEN_KINDS and fact.turn_id is not None:
        about = {"turnId": fact.turn_id, **_course(fact)}
        return [_of_turn(frame, about) for frame in frames(fact, peer)]
    if fact.target not in FOR_FRONT_ENDS:
        return []
    about = {"turnId": fact.turn_id, "txId": fact.tx_id, "sender": fact.sender, "payload": fact.read_payload()}
    told = {name: value for name, value in about.items() if value is not None}
    return [b"id: 1.%d.0\ndata: %b\n\n" % (fact.seq, _encode(custom(_name(fact.kind), told)))]


def _course(fact: StoredFact) -> Json:
    if not fact.kind.startswith("USER_INPUT") or fact.target != "SYSTEM":
        return {}
    replaces = mapping(mapping(fact.read_payload()).get("run")).get("replaces")
    return {"replaces": replaces} if replaces else {}


def _of_turn(frame: bytes, about: Json) -> bytes:
    """Add the run to an event's `metadata`: several runs share this stream, and few events name theirs."""
    event, told = frame[: -len(b"}\n\n")], _encode(about)
    if event.endswith(CUT):  # it has one already
        return b"%b,%b}\n\n" % (event[: -len(b"}")], told[1:])
    return b'%b,"metadata":%b}\n\n' % (event, told)


def _name(kind: str) -> str:
    return "paddock.session." + kind.partition(":")[2].lower()
