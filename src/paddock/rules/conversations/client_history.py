"""A conversation as a client tells it, held against the conversation as we know it. Pure.

Clients of some doors send everything said so far with every message. What we know counts as we know it; what is new is
found by the names of messages. A client that leaves out a question it once showed has taken another course from there;
one that merely did not see an answer (its connection was lost) has not, and the answer stays. So does a question that
came another way, for no client of this kind ever asked it: one that leaves it out is behind.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, cast

import msgspec

from paddock.rules.rows.rows import ERASED_WORDS, TranscriptRow, is_erased
from paddock.rules.values import Value, replace

Unseen = Literal["keep", "leave"]
"""What a client says of questions that it does not show: they stay, or they are left behind."""
RESULT = ":result"
"""What follows the name of a tool call in the name of its answer."""


class Media(Value, frozen=True):
    """A part of a message that is no text: its bytes (base64), or where they are said to be."""

    data: str | None = None
    url: str | None = None
    file_id: str | None = None
    mime_type: str | None = None
    filename: str | None = None


class ClientMessage(Value, frozen=True):
    """One message of a user, of an agent or of a tool, in a client's words."""

    message_id: str
    role: str
    content: str | Sequence[Mapping[str, Any] | Media] = ""
    """Text, or parts: {type, text} and media."""
    text: str = ""
    tool_calls: Sequence[Mapping[str, Any]] = ()
    """{id, name, arguments} of each."""
    tool_call_id: str = ""
    error: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """All ids by which this message may be known."""
        if self.role == "tool":
            return self.message_id, f"{self.tool_call_id}{RESULT}"
        return self.message_id, *(str(call["id"]) for call in self.tool_calls)


class Merged(Value, frozen=True):
    """The new part of a client's history."""

    asked: int | None = None
    """Which of the client's messages is to be answered."""
    again: TranscriptRow | None = None
    """A message of ours that is to be answered again."""
    supplied: Sequence[int] = ()
    """Which of the client's messages are new and come before it."""
    replaces: int | None = None
    """From which item on the conversation is left behind."""
    diverged: bool = False
    """The client does not show something that we have: it should be told how things stand."""
    unseen: Sequence[int] = ()
    """Questions that the client does not show, since the newest item it shows; the newest first."""
    shows_nothing: bool = False
    """The client shows no item of ours: the first question was edited, or the client sends only what is new."""


def name_of(row: TranscriptRow) -> str | None:
    """Return the id by which clients know an item; None for items they do not show."""
    if row.role == "system":
        return None
    if row.item_type == "tool_call":
        return call_id_of(row)
    if row.item_type == "tool_result":
        return f"{call_id_of(row)}{RESULT}"
    named = given_name(row)
    if named is not None or row.role == "user":
        return named or row.item_id
    is_file = b'"artifact"' in row.content_json and "artifact" in msgspec.json.decode(row.content_json)
    return None if is_file else row.item_id


def call_id_of(row: TranscriptRow) -> str:
    about: Mapping[str, Any] = msgspec.json.decode(row.content_json) if row.content_json else {}
    return str(about.get("tool_call_id") or row.item_id)


def given_name(row: TranscriptRow) -> str | None:
    about: Mapping[str, Any] = msgspec.json.decode(row.metadata) if row.metadata else {}
    name = about.get("message_id")
    return name if isinstance(name, str) else None


def names_in(told: Iterable[ClientMessage]) -> dict[str, int]:
    return {name: index for index, message in enumerate(told) for name in message.names}


def shows(names: Mapping[str, int], rows: Iterable[TranscriptRow]) -> bool:
    return any(name_of(row) in names for row in rows)


def merge(told: Sequence[ClientMessage], known: Sequence[TranscriptRow]) -> Merged:
    """Find what is new. `known` are our items, newest first, at least back to the newest that the client shows."""
    names = names_in(told)
    unseen, matched = _unseen(names, known)
    if not matched:
        return _unknown(told, known)
    last = max(names[name] for row in known if (name := name_of(row)) in names)
    users = [index for index in range(last + 1, len(told)) if told[index].role == "user"]
    if users:
        left = tuple(row.seq for row in unseen if row.role == "user")
        cut = left[-1] if left else None
        return Merged(users[-1], supplied=users[:-1], replaces=cut, diverged=bool(unseen), unseen=left)
    if last == len(told) - 1 and told[last].role == "user":
        return _again(told[last], last, known)
    return Merged(diverged=bool(unseen))


def keeping(merged: Merged, from_elsewhere: int | None) -> Merged:
    """Keep the question at `from_elsewhere` and all before it; who then replaces nothing brings only what is new."""
    if from_elsewhere is None:
        return merged
    left = [seq for seq in merged.unseen if seq > from_elsewhere]
    if merged.shows_nothing and not left:
        return Merged(merged.asked, shows_nothing=True)
    return replace(merged, replaces=left[-1] if left else None)


def _unseen(names: Mapping[str, int], known: Sequence[TranscriptRow]) -> tuple[list[TranscriptRow], bool]:
    unseen: list[TranscriptRow] = []
    for row in known:
        name = name_of(row)
        if name in names:
            return unseen, True
        if name is not None:
            unseen.append(row)
    return unseen, False


def _unknown(told: Sequence[ClientMessage], known: Sequence[TranscriptRow]) -> Merged:
    """Nothing is known: a new conversation, or one that begins anew because its first question was edited."""
    users = [index for index, message in enumerate(told) if message.role == "user"]
    if not users:
        return Merged()
    asked, before = users[-1], range(users[-1])
    left = tuple(row.seq for row in known if row.role == "user")
    if not left:
        return Merged(asked, supplied=() if known else before)
    return Merged(asked, supplied=before, replaces=left[-1], diverged=True, unseen=left, shows_nothing=True)


def _again(message: ClientMessage, index: int, known: Sequence[TranscriptRow]) -> Merged:
    """Ends with a question we have: to be answered again, in other words if the client has others for it."""
    row = next(row for row in known if name_of(row) in message.names)
    if message.text == (ERASED_WORDS if is_erased(row) else row.content):
        return Merged(again=row, replaces=row.seq, diverged=True)
    return Merged(index, replaces=row.seq, diverged=True)


class Supplied(Value, frozen=True):
    """Something a client brought along, in the shape of what agents say."""

    message_id: str
    payload: Mapping[str, Any]


def supplied_by(messages: Iterable[ClientMessage]) -> list[Supplied]:
    """A history of the client's own: nobody vouches for it, and it is marked so."""
    tools: dict[str, str] = {}
    found: list[Supplied] = []
    for message in messages:
        if message.role == "tool":
            found.append(answer_to(message, tools.get(message.tool_call_id, "")))
        elif message.text or not message.tool_calls:
            words = {"role": message.role, "content": message.text}
            found.append(_supplied(message.message_id, "message.completed", {"message": words}))
        for call in message.tool_calls:
            tools[call["id"]] = call["name"]
            about = {
                "tool_call_id": call["id"],
                "tool_name": call["name"],
                "parameters": _parameters(call["arguments"]),
            }
            found.append(_supplied(call["id"], "tool.call.started", about))
    return found


def answer_to(message: ClientMessage, tool_name: str) -> Supplied:
    outcome = {"result": message.text} if message.error is None else {"error": message.error}
    about = {"tool_call_id": message.tool_call_id, "tool_name": tool_name, **outcome}
    return _supplied(message.message_id, "tool.call.completed", about)


def _parameters(arguments: str) -> dict[str, Any]:
    try:
        read = msgspec.json.decode(arguments or "{}")
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        read = None
    return cast("dict[str, Any]", read) if isinstance(read, dict) else {"arguments": arguments}


def _supplied(message_id: str, kind: str, data: Mapping[str, Any]) -> Supplied:
    return Supplied(message_id, {"type": kind, "data": data})
