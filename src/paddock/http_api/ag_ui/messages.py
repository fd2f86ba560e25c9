"""The messages of an AG-UI client, of 1.0 or of 0.x, read kindly: what is not known is passed over and noted.

A known field with a wrong value is refused; null counts as left out. Pure: nothing a message points at is looked up
here, and nothing is fetched anywhere.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from paddock.rules.conversations.client_history import ClientMessage, Media
from paddock.rules.run.input_shapes import InvalidInputError, require

Json = dict[str, Any]
SPOKEN = frozenset({"user", "assistant", "tool"})
INSTRUCTIONS = frozenset({"system", "developer"})
UNSAID = frozenset({"reasoning", "activity"})
"""Known, and nobody's words."""
MEDIA = frozenset({"image", "audio", "video", "document"})
MAX_NOTES = 20


class Notes:
    """Notes on what was passed over, for the log. Bounded: a client may send thousands of odd things."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.count = 0

    def note(self, text: str) -> None:
        self.count += 1
        if len(self.told) < MAX_NOTES:
            self.told.append(text)


def without_nulls(given: Mapping[str, Any]) -> Json:
    return {name: value for name, value in given.items() if value is not None}


def as_object(given: object, where: str) -> Json:
    if not isinstance(given, dict):
        raise InvalidInputError(f"{where} must be an object")
    return without_nulls(cast("Json", given))


def optional(given: Mapping[str, Any], name: str, kind: type, where: str, called: str = "a string") -> Any:
    value = given.get(name)
    if value is None or isinstance(value, kind):
        return value
    raise InvalidInputError(f"{where}.{name} must be {called}")


def needed(given: Mapping[str, Any], name: str, where: str) -> str:
    value = given.get(name)
    if isinstance(value, str) and value:
        return value
    raise InvalidInputError(f"{where}.{name} must be a string")


def read_message(given: Json, role: str, where: str, notes: Notes) -> ClientMessage:
    """A message of a user, an agent or a tool."""
    message_id = needed(given, "id", where)
    optional(given, "name", str, where)
    if role == "assistant":
        text = optional(given, "content", str, where) or ""
        calls = [_tool_call(call, place) for call, place in _each(given.get("toolCalls"), f"{where}.toolCalls")]
        return ClientMessage(message_id, role, text, text, calls)
    content = _content(given.get("content"), f"{where}.content", notes)
    text = _text_of(content)
    if role == "user":
        return ClientMessage(message_id, role, content, text)
    error = optional(given, "error", str, where)
    return ClientMessage(message_id, role, text, text, tool_call_id=needed(given, "toolCallId", where), error=error)


def _tool_call(given: object, where: str) -> Json:
    call = as_object(given, where)
    function = as_object(call.get("function"), f"{where}.function")
    arguments = optional(function, "arguments", str, f"{where}.function") or ""
    return {
        "id": needed(call, "id", where),
        "name": needed(function, "name", f"{where}.function"),
        "arguments": arguments,
    }


def _each(given: object, where: str) -> list[tuple[object, str]]:
    if given is None:
        return []
    require(isinstance(given, list), f"{where} must be a list")
    return [(item, f"{where}[{index}]") for index, item in enumerate(cast("list[object]", given))]


def _text_of(content: str | Sequence[Json | Media]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if not isinstance(part, Media))


# --- parts ------------------------------------------------------------------------------------------------------------


def _content(given: object, where: str, notes: Notes) -> str | list[Json | Media]:
    """Text, or parts: of text as objects, of anything else as what we know of it."""
    if isinstance(given, str):
        return given
    require(isinstance(given, list), f"{where} must be a string or a list of parts")
    parts: list[Json | Media] = []
    for part, place in _each(given, where):
        known = _part(as_object(part, place), place, notes)
        if known is not None:
            parts.append(known)
    return parts


def _part(part: Json, where: str, notes: Notes) -> Json | Media | None:
    kind = part.get("type")
    if kind == "text":
        text = part.get("text")
        require(isinstance(text, str), f"{where}.text must be a string")
        return {"type": "text", "text": text}
    if kind == "binary":
        return _binary(part, where)
    if kind in MEDIA:
        return _media(part, where, notes)
    notes.note(f"{where}: unknown part {str(kind)[:64]!r}")
    return None


def _binary(part: Json, where: str) -> Media:
    """Binary part of 0.x clients; 1.0 has parts with a source in its place."""
    return Media(
        data=optional(part, "data", str, where),
        url=optional(part, "url", str, where),
        file_id=optional(part, "id", str, where),
        mime_type=optional(part, "mimeType", str, where),
        filename=optional(part, "filename", str, where),
    )


def _media(part: Json, where: str, notes: Notes) -> Media | None:
    source = as_object(part.get("source"), f"{where}.source")
    about = as_object(part.get("metadata") or {}, f"{where}.metadata")
    filename, file_id = about.get("filename"), about.get("attachmentId")
    known = {
        "mime_type": optional(source, "mimeType", str, f"{where}.source"),
        "filename": filename if isinstance(filename, str) else None,
        "file_id": file_id if isinstance(file_id, str) else None,
    }
    match source.get("type"):
        case "data":
            require(known["mime_type"] is not None, f"{where}.source.mimeType must be a string")
            return Media(data=needed(source, "value", f"{where}.source"), **known)
        case "url":
            return Media(url=needed(source, "value", f"{where}.source"), **known)
        case other:
            notes.note(f"{where}: a source of type {str(other)[:64]!r} cannot be used here")
            return None


# --- answers to questions -------------------------------------------------------------------------------------------


def read_resume(given: object) -> list[Json]:
    """The answers to interrupts. Raises InvalidInputError."""
    entries: list[Json] = []
    for item, where in _each(given, "resume"):
        entry = as_object(item, where)
        status = entry.get("status")
        if status not in ("resolved", "cancelled"):
            raise InvalidInputError(f"{where}.status must be resolved or cancelled")
        told = {"interruptId": needed(entry, "interruptId", where), "status": status}
        entries.append(told | ({"payload": entry["payload"]} if "payload" in entry else {}))
    return entries
