"""Recorded facts said in AG-UI, as server-sent events. Its names are here and in `outputs.py` and nowhere else.

Two dialects: "1" is AG-UI 1.0; "0" is for the 0.x clients still in use, which die of a `cancelled` outcome, of
`pendingToolCallIds` and of empty text. A fact without a word in AG-UI says nothing. What a fact says depends on
nothing but the fact, the dialect and the names the client gave its run, so a replay says the same as the live stream.
Total: a runner's odd payload makes an odd event, never an invalid one and never a crash.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

import msgspec

from paddock.http_api.ag_ui.outputs import Event, Json, custom, mapping, output
from paddock.http_api.edge.shapes import iso
from paddock.rules.log.chain import StoredFact
from paddock.rules.log.payloads import MESSAGE, is_message
from paddock.rules.rows.rows import ERASED_WORDS
from paddock.rules.run.results import questions_in
from paddock.rules.values import Value

PROTOCOL_VERSION = "1.0"
TERMINAL_KINDS = frozenset(
    {
        "AGENT_OUTPUT:FINAL",
        "ERROR:RUN_FAILED",
        "ERROR:ROUTE_TIMEOUT",
        "ERROR:AGENT_NOT_IN_SESSION",
        "EVENT:CANCELED",
        "EVENT:TURN_STEERED",
    }
)
"""Facts that end a run: the last word of its stream."""

LAST_SECOND = 253_402_300_800
"""The end of the year 9999: no calendar goes further."""

_encode = msgspec.json.Encoder().encode


SignedUrl = Callable[[str], str | None]
"""The id of a file to an address under which the reader can have it for a while."""
MEDIA = frozenset({"image", "audio", "video"})


class AgUiPeer(Value, frozen=True):
    """Whom we talk to: the dialect, and what the client calls its thread and its run."""

    dialect: str
    thread_id: str
    run_id: str
    key: str
    """Under which its frames are shared: the dialect, and the thread's name when the client has its own for it."""
    follows_all: bool = False
    """Whether it reads the whole conversation: then it is told every input, and not only those of the native door."""
    signed_url: SignedUrl | None = None
    """Makes addresses of files that this reader may open; only where a frame needs one."""

    @property
    def is_new(self) -> bool:
        return self.dialect != "0"


def frames(fact: StoredFact, peer: AgUiPeer) -> list[bytes]:
    """The frames of one fact, ready to send; empty when AG-UI has no word for it."""
    if fact.is_delta:
        said: Iterable[bytes] = _delta(fact)
    else:
        say = _WORDS.get(fact.kind)
        said = map(_encode, say(fact, peer)) if say else ()
    dialect, seq = peer.dialect.encode(), fact.seq
    return [b"id: %b.%d.%d\ndata: %b\n\n" % (dialect, seq, k, body) for k, body in enumerate(said)]


def is_personal(fact: StoredFact) -> bool:
    """Tell if a fact holds addresses that are signed for one reader; its frames are not shared."""
    return fact.kind.startswith("USER_INPUT") and b'"binary"' in fact.payload


# --- text: the hot path ----------------------------------------------------------------------------------------------


class _Chunk(msgspec.Struct, gc=False):
    content: str = ""


class _DeltaData(msgspec.Struct, gc=False):
    chunk: _Chunk


class _Delta(msgspec.Struct, gc=False):
    data: _DeltaData


class _DeltaMetadata(msgspec.Struct, gc=False):
    message_id: str
    opens: bool = False


_read_delta = msgspec.json.Decoder(_Delta).decode
_read_delta_metadata = msgspec.json.Decoder(_DeltaMetadata).decode


def _delta(fact: StoredFact) -> list[bytes]:
    metadata = _read_delta_metadata(fact.metadata)
    text = _read_delta(fact.payload).data.chunk.content
    message_id = _encode(metadata.message_id)
    said: list[bytes] = []
    if metadata.opens:
        said.append(b'{"type":"TEXT_MESSAGE_START","messageId":%b,"role":"assistant"}' % message_id)
    if text:
        said.append(b'{"type":"TEXT_MESSAGE_CONTENT","messageId":%b,"delta":%b}' % (message_id, _encode(text)))
    return said


# --- everything else --------------------------------------------------------------------------------------------------


def _run_started(fact: StoredFact, peer: AgUiPeer) -> list[Event]:
    if fact.target != "SYSTEM":
        return []
    event = _of_run("RUN_STARTED", peer, fact)
    if not peer.is_new:
        return [event]
    event["protocolVersion"] = PROTOCOL_VERSION
    payload = mapping(fact.read_payload())
    params = mapping(payload.get("params"))
    if "parentRunId" in params:
        event["parentRunId"] = params["parentRunId"]
    if mapping(payload.get("run")).get("door") == "native":
        event["input"] = _input(payload, params, peer)
    elif peer.follows_all and (said := what_was_said(payload)):
        event["input"] = {"threadId": peer.thread_id, "runId": peer.run_id, "messages": [_user(said, peer)]}
    return [event]


def what_was_said(payload: Json) -> Json:
    """The message of an input; empty for one that is no message."""
    event = mapping(mapping(payload.get("run")).get("event"))
    message = mapping(payload.get("message"))
    said = message.get("content") or message.get("erased")
    return message if said and is_message(str(event.get("event_type") or MESSAGE)) else {}


def _user(message: Json, peer: AgUiPeer) -> dict[str, Any]:
    if message.get("erased") is True:
        return {"id": message.get("id"), "role": "user", "content": ERASED_WORDS}
    return {**message, "role": "user", "content": _content(message.get("content"), peer)}


def _input(payload: Json, params: Json, peer: AgUiPeer) -> Json:
    message = mapping(payload.get("message"))
    user = _user(message, peer) | ({"erased": True} if message.get("erased") is True else {})
    if "encryptedValue" in params:
        user["encryptedValue"] = params["encryptedValue"]
    others: list[Any] = params.get("messages") or []
    kept = {key: params[key] for key in ("parentRunId", "state", "tools", "context", "forwardedProps") if key in params}
    return {"threadId": peer.thread_id, "runId": peer.run_id, "messages": [user, *others], **kept}


def _content(content: object, peer: AgUiPeer) -> object:
    if not isinstance(content, list):
        return content or ""
    return [_part(mapping(part), peer) for part in cast("list[object]", content)]


def _part(part: Json, peer: AgUiPeer) -> Json:
    """Convert a `binary` part, which AG-UI 1.0 no longer has, to one with a source."""
    if part.get("type") != "binary":
        return part
    file_id, name = str(part.get("id") or ""), part.get("filename")
    url = part.get("url") or (peer.signed_url(file_id) if peer.signed_url is not None and file_id else None)
    if not url:
        return {"type": "text", "text": f"({name or 'a file'})"}
    return media(file_id, str(part.get("mimeType") or ""), str(url), name)


def media(file_id: str, mime: str, url: str, name: object) -> Json:
    """A file in a message of 1.0."""
    kind = mime.partition("/")[0]
    about = {key: value for key, value in (("filename", name), ("attachmentId", file_id)) if value}
    source = {"type": "url", "value": url, "mimeType": mime}
    return {"type": kind if kind in MEDIA else "document", "source": source, **({"metadata": about} if about else {})}


def started(peer: AgUiPeer) -> Event:
    """The beginning of a run that is none of the log: it tells how things stand."""
    event = _of_run("RUN_STARTED", peer)
    return {**event, "protocolVersion": PROTOCOL_VERSION} if peer.is_new else event


def finished(peer: AgUiPeer, data: Json, fact: StoredFact | None = None) -> Event:
    """The end of a run that completed with this."""
    event = _of_run("RUN_FINISHED", peer, fact)
    pending = data.get("pending_tool_call_ids")
    if peer.is_new and isinstance(pending, list) and pending:
        ids = [str(call_id) for call_id in cast("list[object]", pending)]
        event["outcome"] = {"type": "success", "pendingToolCallIds": ids}
    if questions := questions_in(data):
        event["outcome"] = {"type": "interrupt", "interrupts": [_interrupt(raw) for raw in questions]}
    if "usage" in data and (usage := _usage(data["usage"])):
        event["usage"] = usage
    return event


def _run_finished(fact: StoredFact, peer: AgUiPeer) -> list[Event]:
    return [finished(peer, mapping(mapping(fact.read_payload()).get("data")), fact)]


_INTERRUPT: Mapping[str, tuple[str, type]] = {
    "message": ("message", str),
    "tool_call_id": ("toolCallId", str),
    "response_schema": ("responseSchema", dict),
    "metadata": ("metadata", dict),
}


def _interrupt(raw: Mapping[str, object]) -> Json:
    """Convert a question for a person. Fields of the wrong type are left out."""
    told = {name: raw[key] for key, (name, kind) in _INTERRUPT.items() if isinstance(raw.get(key), kind)}
    if _is_time(raw.get("expires_at")):
        told["expiresAt"] = iso(cast("float", raw["expires_at"]))
    return {"id": raw["id"], "reason": str(raw.get("reason") or "input"), **told}


def _is_time(value: object) -> bool:
    return type(value) in (int, float) and 0 <= cast("float", value) < LAST_SECOND


_COUNTS = {
    "prompt_tokens": "inputTokens",
    "completion_tokens": "outputTokens",
    "total_tokens": "totalTokens",
    "reasoning_tokens": "reasoningTokens",
    "cached_input_tokens": "cachedInputTokens",
    "cache_write_input_tokens": "cacheWriteInputTokens",
}


def _usage(given: object) -> list[Json]:
    """Return token counts by model. A value that is no count is left out, not set to zero."""
    if given is None:
        return []
    entries = cast("list[object]", given) if isinstance(given, list) else [given]
    return [entry for entry in map(_usage_entry, entries) if entry]


def _usage_entry(given: object) -> Json:
    raw = mapping(given)
    labels = {key: raw[key] for key in ("provider", "model") if isinstance(raw.get(key), str)}
    return labels | {name: raw[key] for key, name in _COUNTS.items() if _is_count(raw.get(key))}


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < 2**53


def _run_error(fact: StoredFact, _: AgUiPeer) -> list[Event]:
    payload = mapping(fact.read_payload())
    message = str(payload.get("message") or "the run failed without saying why")
    return [_error(fact, str(payload.get("code") or "runtime_error"), message)]


def _cancelled(fact: StoredFact, peer: AgUiPeer) -> list[Event]:
    if not peer.is_new:
        return [_error(fact, "cancelled", "the run was cancelled")]
    event = _of_run("RUN_FINISHED", peer, fact)
    return [{**event, "outcome": {"type": "cancelled"}}]


def _error(fact: StoredFact, code: str, message: str) -> Event:
    return {"type": "RUN_ERROR", "timestamp": int(fact.time * 1000), "message": message, "code": code}


def _queued(fact: StoredFact, _: AgUiPeer) -> list[Event]:
    return [custom("paddock.turn.queued", _told(fact, "position", "while_busy"))]


def _run_handed_over(fact: StoredFact, peer: AgUiPeer) -> list[Event]:
    """Begin a run that another run handed over to: it has a parent, and no input of its own."""
    event = _of_run("RUN_STARTED", peer, fact)
    if not peer.is_new:
        return [event]
    parent = mapping(fact.read_payload()).get("parent_turn_id")
    more = {"parentRunId": parent} if isinstance(parent, str) else {}
    return [{**event, "protocolVersion": PROTOCOL_VERSION, **more}]


def _handover_asked(fact: StoredFact, _: AgUiPeer) -> list[Event]:
    return [custom("paddock.handover.prompt", {**mapping(fact.read_payload()), "tx_id": fact.tx_id})]


def _steered(fact: StoredFact, peer: AgUiPeer) -> list[Event]:
    """End a run whose input another run took in. The answer is in the other run's stream."""
    into = mapping(fact.read_payload()).get("steered_into")
    finished = _of_run("RUN_FINISHED", peer, fact)
    return [custom("paddock.turn.steered", {"steeredInto": into}), finished]


def _told(fact: StoredFact, *names: str) -> Json:
    payload = mapping(fact.read_payload())
    return {name: payload[name] for name in names if name in payload}


def _of_run(kind: str, peer: AgUiPeer, fact: StoredFact | None = None) -> Event:
    """Make an event about a run as a whole. It has a time only if it was made from a fact."""
    time = {} if fact is None else {"timestamp": int(fact.time * 1000)}
    return {"type": kind, **time, "threadId": peer.thread_id, "runId": peer.run_id}


_WORDS: Mapping[str, Callable[[StoredFact, AgUiPeer], list[Event]]] = {
    "USER_INPUT": _run_started,
    "USER_INPUT:MENTION": _run_started,
    "CONTROL:HANDOVER_CONTEXT": _run_handed_over,
    "CONTROL:HANDOVER_UI_PROMPT": _handover_asked,
    "EVENT:TURN_STEERED": _steered,
    "EVENT:TURN_QUEUED": _queued,
    "AGENT_OUTPUT:MESSAGE": output,
    "AGENT_OUTPUT:FINAL": _run_finished,
    "ERROR:RUN_FAILED": _run_error,
    "ERROR:ROUTE_TIMEOUT": _run_error,
    "ERROR:AGENT_NOT_IN_SESSION": _run_error,
    "EVENT:CANCELED": _cancelled,
}
"""What AG-UI has a word for. All other kinds stay inside."""

SPOKEN_KINDS = frozenset(_WORDS) | {"AGENT_OUTPUT:CHUNK"}
"""The kinds worth asking about."""
