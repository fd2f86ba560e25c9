"""One run as the runner receives it: what happened, who, where, what it was granted. Never a window of history."""

# ruff: noqa: RUF012 - pydantic gives every instance its own copy of a default
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field

from paddock_sdk.protocol.artifacts import ArtifactRef
from paddock_sdk.protocol.messages import ContentElement
from paddock_sdk.protocol.model import EpochSeconds, WireModel
from paddock_sdk.protocol.resources import AgentResources
from paddock_sdk.protocol.version import PROTOCOL_VERSION

HOST_NAME = "paddock"


def _current_spelling(source: object) -> object:
    return "host_adapter" if source == "pipeline_adapter" else source


TriggerSource = Annotated[
    Literal["platform", "webui", "api", "scheduler", "system", "host_adapter"], BeforeValidator(_current_spelling)
]


class AgentTrigger(WireModel):
    type: str
    source: TriggerSource
    timestamp: EpochSeconds | None = None


class RawEventRef(WireModel):
    ref_id: str | None = None
    storage_key: str | None = None


class AgentEventContext(WireModel):
    """The event a run answers.

    `event_type` is a stable name such as message.received; `source_event_type` is the platform's.
    """

    event_id: str
    event_type: str
    event_time: EpochSeconds | None = None
    source: str
    source_event_type: str | None = None
    raw_ref: RawEventRef | None = None
    data: dict[str, Any] = {}


class ConversationContext(WireModel):
    conversation_id: str | None = None
    thread_id: str | None = None
    launcher_type: str | None = None
    launcher_id: str | None = None
    bot_id: str | None = None
    workspace_id: str | None = None


class ActorContext(WireModel):
    """The person or program that caused the event."""

    actor_type: str
    actor_id: str | None = None
    actor_name: str | None = None
    metadata: dict[str, Any] = {}


class SubjectContext(WireModel):
    """The thing the event is about."""

    subject_type: str
    subject_id: str | None = None
    data: dict[str, Any] = {}


class AgentInput(WireModel):
    """The input of this event only. Anything large is an artifact."""

    text: str | None = None
    contents: list[ContentElement] = []
    attachments: list[ArtifactRef] = []
    message_chain: dict[str, Any] | None = None


class DeliveryContext(WireModel):
    """Where answers go and what that place can show."""

    surface: str
    reply_target: dict[str, Any] | None = None
    supports_streaming: bool = False
    supports_edit: bool = False
    supports_reaction: bool = False
    max_message_size: int | None = None
    platform_capabilities: dict[str, Any] = {}


class InlineContextPolicy(WireModel):
    mode: Literal["none", "current_event", "recent_tail", "summary_tail"]
    delivered_count: int = 0
    source_total_count: int | None = None
    messages_complete: bool = False
    reason: str | None = None


class ContextAPICapabilities(WireModel):
    """Which context calls this run may make."""

    history_page: bool = False
    history_search: bool = False
    event_get: bool = False
    event_page: bool = False
    artifact_metadata: bool = False
    artifact_read: bool = False
    state: bool = False
    storage: bool = False


CONTEXT_API_CALLS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "history_page": "history.page",
        "history_search": "history.search",
        "event_get": "events.get",
        "event_page": "events.page",
        "artifact_metadata": "artifacts.metadata",
        "artifact_read": "artifacts.read_range",
        "state": "state.get",
        "storage": "storage.get",
    }
)
"""The host call that each field of `ContextAPICapabilities` stands for."""


class ContextAccess(WireModel):
    """Says which context was sent along, which was not, and where to read on."""

    conversation_id: str | None = None
    thread_id: str | None = None
    latest_cursor: str | None = None
    event_seq: int | None = None
    transcript_seq: int | None = None
    has_history_before: bool = False
    inline_policy: InlineContextPolicy
    available_apis: ContextAPICapabilities


class StaticContextRef(WireModel):
    """Something that seldom changes (instructions, tool schemas), by version and hash so that caches can keep it."""

    ref: str
    version: str
    hash: str


class AgentRuntimeContext(WireModel):
    host: str = HOST_NAME
    protocol_version: str = PROTOCOL_VERSION
    langbot_version: str | None = None
    trace_id: str
    deadline_at: EpochSeconds | None = None
    """On the host's clock; the handshake says what that clock shows."""
    locale: str | None = None
    timezone: str | None = None
    reach: Literal["any", "public"] | None = None
    """Paddock's own, optional: `public` when the addresses in the config came over the API: they must not lead to
    loopback, private or link-local places (`paddock_sdk.outbound`)."""
    static_refs: dict[str, StaticContextRef] = {}
    metadata: dict[str, Any] = {}


class AgentRunState(WireModel):
    """A snapshot of the small JSON state the host keeps for this runner, per scope."""

    conversation: dict[str, Any] = {}
    actor: dict[str, Any] = {}
    subject: dict[str, Any] = {}
    runner: dict[str, Any] = {}


class AdapterContext(WireModel):
    """Further facts from the door the request came in at. Untrusted; do not rely on them."""

    extra: dict[str, Any] = {}


class AgentRunContext(WireModel):
    """Everything one run starts with."""

    run_id: str
    trigger: AgentTrigger
    event: AgentEventContext
    conversation: ConversationContext | None = None
    actor: ActorContext | None = None
    subject: SubjectContext | None = None
    input: AgentInput
    delivery: DeliveryContext
    resources: AgentResources
    context: ContextAccess
    state: AgentRunState
    runtime: AgentRuntimeContext
    config: dict[str, Any] = {}
    adapter: AdapterContext | None = None
    metadata: dict[str, Any] = {}


class AgentRunRequest(WireModel):
    """The params of `run_agent`."""

    runner_id: str
    runner_name: str
    context: AgentRunContext
    secrets: dict[str, str] = Field(default={}, repr=False)
    """Paddock's own, optional: what this run may know and nobody may keep, such as `mcp_token`. Not in the context."""
