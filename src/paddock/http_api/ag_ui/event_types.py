"""The events of AG-UI that this host sends, as types: for the API's document and the types of its clients.

The events themselves are made in `events.py`, `outputs.py` and `snapshot.py`, and a test compares the two.
"""

from typing import Annotated, Any, Literal

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


class RunStartedEvent(Event, tag="RUN_STARTED"):
    thread_id: str
    run_id: str
    timestamp: Timestamp | None = None
    protocol_version: str | None = None
    parent_run_id: str | None = None
    input: Json | None = None
    metadata: Json | None = None


class RunFinishedEvent(Event, tag="RUN_FINISHED"):
    thread_id: str
    run_id: str
    timestamp: Timestamp | None = None
    outcome: Outcome | None = None
    usage: list[TokenUsage] | None = None
    metadata: Json | None = None


class RunErrorEvent(Event, tag="RUN_ERROR"):
    message: str
    code: str
    timestamp: Timestamp | None = None
    metadata: Json | None = None


class TextMessageStartEvent(Event, tag="TEXT_MESSAGE_START"):
    message_id: str
    role: Literal["assistant"]
    metadata: Json | None = None


class TextMessageContentEvent(Event, tag="TEXT_MESSAGE_CONTENT"):
    message_id: str
    delta: str
    metadata: Json | None = None


class TextMessageEndEvent(Event, tag="TEXT_MESSAGE_END"):
    message_id: str
    metadata: Json | None = None


class ToolCallStartEvent(Event, tag="TOOL_CALL_START"):
    tool_call_id: str
    tool_call_name: str
    metadata: Json | None = None


class ToolCallArgsEvent(Event, tag="TOOL_CALL_ARGS"):
    tool_call_id: str
    delta: str
    metadata: Json | None = None


class ToolCallEndEvent(Event, tag="TOOL_CALL_END"):
    tool_call_id: str
    metadata: Json | None = None


class ToolCallResultEvent(Event, tag="TOOL_CALL_RESULT"):
    message_id: str
    tool_call_id: str
    content: str
    role: Literal["tool"]
    metadata: Json | None = None


class StepStartedEvent(Event, tag="STEP_STARTED"):
    step_name: str
    metadata: Json | None = None


class StepFinishedEvent(Event, tag="STEP_FINISHED"):
    step_name: str
    metadata: Json | None = None


class ActivitySnapshotEvent(Event, tag="ACTIVITY_SNAPSHOT"):
    message_id: str
    activity_type: str
    content: Json
    metadata: Json | None = None


class MessagesSnapshotEvent(Event, tag="MESSAGES_SNAPSHOT"):
    messages: list[Json]
    metadata: Json | None = None


class CustomEvent(Event, tag="CUSTOM"):
    """What AG-UI has no event for; names of ours begin with `paddock.`."""

    name: str
    value: Any
    metadata: Json | None = None


AgUiEvent = (
    RunStartedEvent
    | RunFinishedEvent
    | RunErrorEvent
    | TextMessageStartEvent
    | TextMessageContentEvent
    | TextMessageEndEvent
    | ToolCallStartEvent
    | ToolCallArgsEvent
    | ToolCallEndEvent
    | ToolCallResultEvent
    | StepStartedEvent
    | StepFinishedEvent
    | ActivitySnapshotEvent
    | MessagesSnapshotEvent
    | CustomEvent
)
FRAMES = Content(
    SSE,
    AgUiEvent,
    'id: 1.7.1\ndata: {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"hello"}\n\n',
    "AgUiEvent",
)
"""An answer that is a stream of events."""
