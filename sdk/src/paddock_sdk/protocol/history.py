"""Records a runner reads back: the transcript, the events, knowledge, and input that arrived while it ran."""

# ruff: noqa: RUF012 - pydantic gives every instance its own copy of a default
from typing import Any, Literal

from pydantic_core import to_json

from paddock_sdk.protocol.artifacts import ArtifactRef
from paddock_sdk.protocol.messages import ContentElement
from paddock_sdk.protocol.model import EpochSeconds, WireModel
from paddock_sdk.protocol.run_context import (
    ActorContext,
    AgentEventContext,
    AgentInput,
    ConversationContext,
    SubjectContext,
)

TranscriptItemType = Literal["message", "tool_call", "tool_result", "system"]


class TranscriptItem(WireModel):
    """One item of a conversation, read from the log.

    `content` is its text. `content_json` is there when the item has more than that: the blocks of a message that are
    not text, a tool call, an event. The text of a tool's result travels there alone.
    """

    transcript_id: str
    event_id: str
    conversation_id: str | None = None
    bot_id: str | None = None
    workspace_id: str | None = None
    thread_id: str | None = None
    role: str
    item_type: TranscriptItemType = "message"
    actor_type: str | None = None
    actor_id: str | None = None
    actor_name: str | None = None
    content: str | None = None
    content_json: dict[str, Any] | None = None
    attachment_refs: list[ArtifactRef] = []
    seq: int | None = None
    cursor: str | None = None
    created_at: EpochSeconds | None = None
    metadata: dict[str, Any] = {}

    def with_text(self) -> "TranscriptItem":
        """This item with `content` filled in, also where the wire leaves it to `content_json`."""
        if self.item_type != "tool_result" or self.content is not None or not self.content_json:
            return self
        found = self.content_json.get("error") or self.content_json.get("result")
        text = found if isinstance(found, str) else to_json(found).decode()
        return self.model_copy(update={"content": text})


class HistoryPage(WireModel):
    """Items in the direction asked for: `backward` gives the newest first."""

    items: list[TranscriptItem]
    next_cursor: str | None = None
    prev_cursor: str | None = None
    has_more: bool
    total_count: int | None = None


class HistorySearchResult(WireModel):
    """The newest first. `next_cursor` goes on, as `before_cursor`, where the answer ended."""

    items: list[TranscriptItem]
    total_count: int | None = None
    query: str
    next_cursor: str | None = None
    has_more: bool = False


class AgentEventRecord(WireModel):
    """One recorded event, without its large payloads."""

    event_id: str
    event_type: str
    event_time: EpochSeconds | None = None
    source: str
    source_event_type: str | None = None
    bot_id: str | None = None
    workspace_id: str | None = None
    conversation_id: str | None = None
    thread_id: str | None = None
    actor_type: str | None = None
    actor_id: str | None = None
    actor_name: str | None = None
    subject_type: str | None = None
    subject_id: str | None = None
    input_summary: str | None = None
    input_ref: str | None = None
    raw_ref: str | None = None
    seq: int | None = None
    cursor: str | None = None
    created_at: EpochSeconds | None = None
    metadata: dict[str, Any] = {}


class EventPage(WireModel):
    items: list[AgentEventRecord]
    next_cursor: str | None = None
    prev_cursor: str | None = None
    has_more: bool
    total_count: int | None = None


class RetrievalResultEntry(WireModel):
    """One hit of a knowledge base."""

    id: str
    content: list[ContentElement]
    metadata: dict[str, Any] = {}
    distance: float
    score: float | None = None


class SteeringInputItem(WireModel):
    """Input that arrived while the run was going and was handed to it instead of starting another."""

    claimed_run_id: str
    runner_id: str
    claimed_at: EpochSeconds | None = None
    event: AgentEventContext
    input: AgentInput
    conversation: ConversationContext | None = None
    actor: ActorContext | None = None
    subject: SubjectContext | None = None
    metadata: dict[str, Any] = {}


class SteeringPullResult(WireModel):
    items: list[SteeringInputItem]
