"""Tolerant reader of AG-UI input, of 1.0 or of 0.x: unknown fields, parts and roles are passed over and noted.

A known field with a wrong value is refused; null counts as left out. Clients send the whole conversation every time,
and it is read whole here; what of it is new is found elsewhere. Their own instructions (system, developer) and
everything else besides the conversation stay with the run, untrusted. Pure: nothing a message points at is looked up.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast, get_args

from paddock.host.conversations.client_runs import ClientContext
from paddock.rules.conversations.client_history import ClientMessage, Media, Unseen
from paddock.rules.run.request_bodies import InvalidInputError, decode_object, holds_more_values, require
from paddock.rules.schedule.time_zones import wrong_part
from paddock.rules.values import Value

MAX_NAME = 512
MAX_VALUES = 200_000
"""Values in one body: with 8 MiB of small ones a host would be busy for whole seconds."""
MAX_TOOLS = MAX_CONTEXT = 1_000
MAX_NOTES = 20
FIELDS = frozenset(
    {"threadId", "runId", "protocolVersion", "parentRunId", "state", "messages", "tools", "context"}
    | {"forwardedProps", "resume"}
)
REQUIRED = frozenset({"threadId", "runId", "state", "messages", "tools", "context", "forwardedProps"})
SPOKEN = frozenset({"user", "assistant", "tool"})
INSTRUCTIONS = frozenset({"system", "developer"})
UNSAID = frozenset({"reasoning", "activity"})
"""Roles that are known, and nobody's words."""
MEDIA = frozenset({"image", "audio", "video", "document"})

Json = dict[str, Any]


class AgUiLimits(Value, frozen=True):
    """Size limits of one request. Whole conversations come in, so they are wider than at other doors."""

    body_bytes: int = 8 * 1024 * 1024
    messages: int = 2_000


class AgUiInput(Value, frozen=True):
    """One run as an AG-UI client asks for it. Nobody vouches for what is in `params`."""

    thread_name: str
    run_id: str
    dialect: str
    told: ClientContext
    params: Mapping[str, Any]
    document: Mapping[str, Any]
    passed_over: Sequence[str] = ()
    is_whole: bool = True
    """Whether all fields are there that AG-UI requires, as its client libraries send them."""


@dataclass(slots=True)
class Reading:
    """Goes with the reading of one input: how its addresses are spelled here, and what was passed over, for the log.
    The notes are bounded: a client may send thousands of odd things."""

    local: Callable[[str], str]
    notes: list[str] = field(default_factory=list[str])
    noted: int = 0

    def note(self, text: str) -> None:
        self.noted += 1
        if len(self.notes) < MAX_NOTES:
            self.notes.append(text)


def read_ag_ui_input(
    body: bytes, is_time_zone: Callable[[str], bool], limits: AgUiLimits, local: Callable[[str], str]
) -> AgUiInput:
    """Raises InvalidInputError with a sentence about the first wrong value. `local` spells addresses of this host."""
    document = _document(body)
    given, reading = _without_nulls(document), Reading(local)
    for name in given.keys() - FIELDS:
        reading.note(f"unknown field {name[:64]!r}")
    return AgUiInput(
        thread_name=_name(given, "threadId"),
        run_id=_name(given, "runId"),
        dialect=_dialect(given.get("protocolVersion")),
        told=_told(given, limits, reading),
        params=_params(given, is_time_zone),
        is_whole=document.keys() >= REQUIRED,
        document=document,
        passed_over=[*reading.notes, *([f"and {reading.noted} in all"] if reading.noted > MAX_NOTES else [])],
    )


def read_names(body: bytes) -> tuple[str, str | None, str]:
    """Of a client that only wants to know how things stand: its thread, its run if it names one, and its dialect."""
    given = _without_nulls(_document(body))
    run_id = _name(given, "runId") if "runId" in given else None
    return _name(given, "threadId"), run_id, _dialect(given.get("protocolVersion"))


def _document(body: bytes) -> Json:
    if holds_more_values(body, MAX_VALUES):
        raise InvalidInputError(f"the body must hold at most {MAX_VALUES} values; send less state or fewer messages")
    return decode_object(body, "the body")


def _name(document: Json, field: str) -> str:
    given = document.get(field)
    if isinstance(given, str) and 0 < len(given) <= MAX_NAME:
        return given
    raise InvalidInputError(f"{field} must be a string of 1 to {MAX_NAME} characters")


def _dialect(version: object) -> str:
    """Return the dialect for a protocol version. Clients that send none are older than 1.0."""
    if version is None:
        return "0"
    if not isinstance(version, str):
        raise InvalidInputError("protocolVersion must be a string")
    return "0" if version.startswith("0.") else "1"


# --- what belongs to the run beside its messages ----------------------------------------------------------------------


def _params(document: Json, is_time_zone: Callable[[str], bool]) -> Json:
    parent = document.get("parentRunId")
    require(parent is None or isinstance(parent, str), "parentRunId must be a string")
    given: Json = {name: document[name] for name in ("parentRunId", "state") if name in document}
    if "tools" in document:
        given["tools"] = _objects(document["tools"], "tools", MAX_TOOLS, texts=("description",), needs="name")
    if "context" in document:
        given["context"] = _objects(document["context"], "context", MAX_CONTEXT, texts=("description", "value"))
    if "forwardedProps" in document:
        given["forwardedProps"] = _forwarded(document["forwardedProps"], is_time_zone)
    # Clients send empty ones of everything; storing them would say nothing.
    return {key: value for key, value in given.items() if value not in (None, [], {})}


def _objects(items: object, field: str, most: int, *, texts: Sequence[str], needs: str = "") -> list[Json]:
    """Read a list of objects. The fields in `texts` must be text; the field `needs` must be present."""
    valid = isinstance(items, list) and all(isinstance(item, dict) for item in cast("list[Any]", items))
    require(valid, f"{field} must be a list of objects")
    require(len(cast("list[Json]", items)) <= most, f"{field} must be at most {most}")
    read = [_without_nulls(item) for item in cast("list[Json]", items)]
    for index, item in enumerate(read):
        if needs:
            _needed(item, needs, f"{field}[{index}]")
        for name in texts:
            _optional(item, name, f"{field}[{index}]")
    return read


def _unseen(forwarded: object) -> Unseen | None:
    """Read `forwardedProps.paddock.unseen`, the only field there that means something to the host."""
    ours = cast("Json", forwarded).get("paddock") if isinstance(forwarded, dict) else None
    said = cast("Json", ours).get("unseen") if isinstance(ours, dict) else None
    require(said in (None, *get_args(Unseen)), "forwardedProps.paddock.unseen must be keep or leave")
    return cast("Unseen | None", said)


def _forwarded(given: object, is_time_zone: Callable[[str], bool]) -> object:
    """Pass the properties on, without `client_time` if it is invalid: then the user's own time zone counts."""
    if not isinstance(given, dict) or "client_time" not in given:
        return cast("object", given)
    props = cast("Json", given)
    client_time = props["client_time"]
    if isinstance(client_time, dict) and wrong_part(cast("Json", client_time), is_time_zone) is None:
        return props
    return {key: value for key, value in props.items() if key != "client_time"}


# --- messages ---------------------------------------------------------------------------------------------------------


def _told(document: Json, limits: AgUiLimits, reading: Reading) -> ClientContext:
    given = document.get("messages")
    require(isinstance(given, list), "messages must be a list")
    items = cast("list[object]", given)
    require(len(items) <= limits.messages, f"messages must be at most {limits.messages}")
    messages: list[ClientMessage] = []
    raw: list[Json] = []
    instructions: list[Json] = []
    for index, item in enumerate(items):
        where = f"messages[{index}]"
        message = _object(item, where)
        role = message.get("role")
        if not isinstance(role, str):
            raise InvalidInputError(f"{where}.role must be a string")
        if role in SPOKEN:
            messages.append(_message(message, role, where, reading))
            raw.append(message)
        elif role in INSTRUCTIONS:
            _optional(message, "content", where)
            instructions.append(message)
        elif role not in UNSAID:
            reading.note(f"{where}: unknown role {role[:64]!r}")
    resume = _resume(document["resume"]) if "resume" in document else ()
    unseen = _unseen(document["forwardedProps"]) if "forwardedProps" in document else None
    return ClientContext(messages, raw, instructions, resume, unseen)


def _message(given: Json, role: str, where: str, reading: Reading) -> ClientMessage:
    message_id = _needed(given, "id", where)
    _optional(given, "name", where)
    if role == "assistant":
        text = _optional(given, "content", where) or ""
        calls = [_tool_call(call, place) for call, place in _each(given.get("toolCalls", []), f"{where}.toolCalls")]
        return ClientMessage(message_id, role, text, text, calls)
    content = given.get("content")
    parts = content if isinstance(content, str) else _parts(content, f"{where}.content", reading)
    text = parts if isinstance(parts, str) else "\n".join(part["text"] for part in parts if not isinstance(part, Media))
    if role == "user":
        return ClientMessage(message_id, role, parts, text)
    call_id, error = _needed(given, "toolCallId", where), _optional(given, "error", where)
    return ClientMessage(message_id, role, text, text, tool_call_id=call_id, error=error)


def _tool_call(given: object, where: str) -> Json:
    call = _object(given, where)
    function = _object(call.get("function"), f"{where}.function")
    arguments = _optional(function, "arguments", f"{where}.function") or ""
    return {
        "id": _needed(call, "id", where),
        "name": _needed(function, "name", f"{where}.function"),
        "arguments": arguments,
    }


def _resume(given: object) -> list[Json]:
    entries: list[Json] = []
    for item, where in _each(given, "resume"):
        entry = _object(item, where)
        status = entry.get("status")
        if status not in ("resolved", "cancelled"):
            raise InvalidInputError(f"{where}.status must be resolved or cancelled")
        told = {"interruptId": _needed(entry, "interruptId", where), "status": status}
        entries.append(told | ({"payload": entry["payload"]} if "payload" in entry else {}))
    return entries


# --- parts of a message -----------------------------------------------------------------------------------------------


def _parts(given: object, where: str, reading: Reading) -> list[Json | Media]:
    """Read the parts of a message: text as objects, files as `Media`. Unknown parts are left out."""
    require(isinstance(given, list), f"{where} must be a string or a list of parts")
    parts = [_part(_object(part, place), place, reading) for part, place in _each(given, where)]
    return [part for part in parts if part is not None]


def _part(part: Json, where: str, reading: Reading) -> Json | Media | None:
    kind = part.get("type")
    if kind == "text":
        text = part.get("text")
        require(isinstance(text, str), f"{where}.text must be a string")
        return {"type": "text", "text": text}
    if kind == "binary":
        return _binary(part, where, reading)
    if kind in MEDIA:
        return _media(part, where, reading)
    reading.note(f"{where}: unknown part {str(kind)[:64]!r}")
    return None


def _binary(part: Json, where: str, reading: Reading) -> Media:
    """Read a file as 0.x clients send it. Clients of 1.0 send a part with a source."""
    url = _optional(part, "url", where)
    return Media(
        data=_optional(part, "data", where),
        url=reading.local(url) if url else url,
        file_id=_optional(part, "id", where),
        mime_type=_optional(part, "mimeType", where),
        filename=_optional(part, "filename", where),
    )


def _media(part: Json, where: str, reading: Reading) -> Media | None:
    source = _object(part.get("source"), f"{where}.source")
    about = _object(part.get("metadata") or {}, f"{where}.metadata")
    filename, file_id = about.get("filename"), about.get("attachmentId")
    known = {
        "mime_type": _optional(source, "mimeType", f"{where}.source"),
        "filename": filename if isinstance(filename, str) else None,
        "file_id": file_id if isinstance(file_id, str) else None,
    }
    match source.get("type"):
        case "data":
            require(known["mime_type"] is not None, f"{where}.source.mimeType must be a string")
            return Media(data=_needed(source, "value", f"{where}.source"), **known)
        case "url":
            return Media(url=reading.local(_needed(source, "value", f"{where}.source")), **known)
        case other:
            reading.note(f"{where}: a source of type {str(other)[:64]!r} cannot be used here")
            return None


# --- values -----------------------------------------------------------------------------------------------------------


def _without_nulls(given: Mapping[str, Any]) -> Json:
    return {name: value for name, value in given.items() if value is not None}


def _object(given: object, where: str) -> Json:
    if not isinstance(given, dict):
        raise InvalidInputError(f"{where} must be an object")
    return _without_nulls(cast("Json", given))


def _each(given: object, where: str) -> list[tuple[object, str]]:
    require(isinstance(given, list), f"{where} must be a list")
    return [(item, f"{where}[{index}]") for index, item in enumerate(cast("list[object]", given))]


def _optional(given: Mapping[str, Any], name: str, where: str) -> str | None:
    value = given.get(name)
    if value is None or isinstance(value, str):
        return value
    raise InvalidInputError(f"{where}.{name} must be a string")


def _needed(given: Mapping[str, Any], name: str, where: str) -> str:
    value = given.get(name)
    if isinstance(value, str) and value:
        return value
    raise InvalidInputError(f"{where}.{name} must be a string")
