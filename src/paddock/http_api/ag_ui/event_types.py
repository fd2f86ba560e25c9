"""The events of AG-UI that this host sends, as types: for the API's document and the types of its clients.

The events themselves are made in `events.py`, `outputs.py` and `snapshot.py`, and a test compares the two.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Union

import msgspec

from paddock.http_api.edge.operations import SSE, Content
from paddock.http_api.edge.shapes import Answer, Json, Moment, about

Timestamp = Annotated[int, about("In milliseconds.")]


class Event(Answer, tag_field="type"):
    """An event of AG-UI. In the stream of a conversation, `metadata` tells of which turn it is."""


class Interrupt(Answer):
    """A question for a person, without whose answer the run does not go on."""

    id: str
    reason: str
    message: str | None = None
    tool_call_id: str | None = None
    response_schema: Json | None = None
    expires_at: Moment | None = None
    metadata: Json | None = None


class Outcome(Answer):
    type: Literal["success", "interrupt", "cancelled"]
    pending_tool_call_ids: list[str] | None = None
    interrupts: list[Interrupt] | None = None


class TokenUsage(Answer):
    provider: str | None = None
    model: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_input_tokens: int | None = None
    cache_write_input_tokens: int | None = None


_NAMES = {"thread_id": str, "run_id": str}
EVENTS: Mapping[str, Mapping[str, Any]] = {
    "RUN_STARTED": {
        **_NAMES,
        "timestamp?": Timestamp,
        "protocol_version?": str,
        "parent_run_id?": str,
        "input?": Json,
    },
    "RUN_FINISHED": {**_NAMES, "timestamp?": Timestamp, "outcome?": Outcome, "usage?": list[TokenUsage]},
    "RUN_ERROR": {"message": str, "code": str, "timestamp?": Timestamp},
    "TEXT_MESSAGE_START": {"message_id": str, "role": Literal["assistant"]},
    "TEXT_MESSAGE_CONTENT": {"message_id": str, "delta": str},
    "TEXT_MESSAGE_END": {"message_id": str},
    "TOOL_CALL_START": {"tool_call_id": str, "tool_call_name": str},
    "TOOL_CALL_ARGS": {"tool_call_id": str, "delta": str},
    "TOOL_CALL_END": {"tool_call_id": str},
    "TOOL_CALL_RESULT": {"message_id": str, "tool_call_id": str, "content": str, "role": Literal["tool"]},
    "STEP_STARTED": {"step_name": str},
    "STEP_FINISHED": {"step_name": str},
    "ACTIVITY_SNAPSHOT": {"message_id": str, "activity_type": str, "content": Json},
    "MESSAGES_SNAPSHOT": {"messages": list[Json]},
    "CUSTOM": {"name": Annotated[str, about("Those of ours begin with `paddock.`.")], "value": Any},
}
"""The fields of each event; those with a question mark may be left out."""


def _event(kind: str, fields: Mapping[str, Any]) -> type[msgspec.Struct]:
    whole = {**fields, "metadata?": Json}
    given = [(one[:-1], hint | None, None) if one.endswith("?") else (one, hint) for one, hint in whole.items()]
    return msgspec.defstruct(f"{kind.title().replace('_', '')}Event", given, bases=(Event,), tag=kind)


AgUiEvent: Any = Union[tuple(_event(kind, fields) for kind, fields in EVENTS.items())]  # noqa: UP007 - of a table
FRAMES = Content(
    SSE, AgUiEvent, 'id: 1.7.1\ndata: {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"hello"}\n\n', "AgUiEvent"
)
"""An answer that is a stream of events."""
