"""The table of host calls, each with its parameters and its answer.

The host decides if a run may make a call; these shapes only say how the question and the answer look.
"""

# ruff: noqa: RUF012 - pydantic gives every instance its own copy of a default
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal, get_args

from paddock_sdk.protocol.artifacts import ArtifactChunk, ArtifactMetadata, ArtifactReadResult, ArtifactRef
from paddock_sdk.protocol.history import (
    AgentEventRecord,
    EventPage,
    HistoryPage,
    HistorySearchResult,
    RetrievalResultEntry,
    SteeringPullResult,
)
from paddock_sdk.protocol.manifest import StorageArea
from paddock_sdk.protocol.messages import LLMTokenUsage, LLMTool, Message, MessageChunk
from paddock_sdk.protocol.model import WireModel


class HostCallParams(WireModel):
    """Every call names its run. Without a run there is no access."""

    run_id: str


# --- models -------------------------------------------------------------------------------------------------------


class ModelsInvokeParams(HostCallParams):
    model_id: str
    messages: list[Message]
    tools: list[LLMTool] | None = None
    extra_args: dict[str, Any] | None = None


class ModelsInvokeResult(WireModel):
    message: Message
    usage: LLMTokenUsage | None = None


class ModelsStreamParams(ModelsInvokeParams):
    pass


class ModelsStreamChunk(WireModel):
    """One piece; the last may carry usage alone."""

    chunk: MessageChunk | None = None
    usage: LLMTokenUsage | None = None


class ModelsStreamResult(WireModel):
    usage: LLMTokenUsage | None = None


class ModelsRerankParams(HostCallParams):
    model_id: str
    query: str
    documents: list[str]
    top_k: int | None = None


class RerankEntry(WireModel):
    index: int
    relevance_score: float


class ModelsRerankResult(WireModel):
    results: list[RerankEntry]


# --- tools --------------------------------------------------------------------------------------------------------


class ToolsGetDetailParams(HostCallParams):
    tool_name: str


class ToolDetail(WireModel):
    tool_name: str
    description: str | None = None
    parameters: dict[str, Any] = {}


class ToolsCallParams(HostCallParams):
    tool_name: str
    parameters: dict[str, Any] = {}


class ToolsCallResult(WireModel):
    """Answer of a tool. A large result is an artifact; then `result` is a short text or null.

    `is_error` (Paddock's own, optional): the call was made and failed, or its arguments were wrong; `result` says so in
    words a model can read.
    """

    result: Any = None
    artifact: ArtifactRef | None = None
    is_error: bool | None = None


# --- knowledge ----------------------------------------------------------------------------------------------------


class KnowledgeRetrieveParams(HostCallParams):
    kb_id: str
    query_text: str
    top_k: int = 5
    filters: dict[str, Any] | None = None


class KnowledgeRetrieveResult(WireModel):
    results: list[RetrievalResultEntry]


# --- history and events -------------------------------------------------------------------------------------------


class HistoryPageParams(HostCallParams):
    conversation_id: str | None = None
    thread_id: str | None = None
    before_cursor: str | None = None
    after_cursor: str | None = None
    limit: int = 50
    direction: Literal["backward", "forward"] = "backward"
    include_artifacts: bool = False


class HistorySearchParams(HostCallParams):
    query: str
    filters: dict[str, Any] | None = None
    top_k: int = 10
    before_cursor: str | None = None


class EventsGetParams(HostCallParams):
    event_id: str


class EventsPageParams(HostCallParams):
    before_cursor: str | None = None
    limit: int = 50


# --- artifacts ----------------------------------------------------------------------------------------------------


class ArtifactsMetadataParams(HostCallParams):
    artifact_id: str


class ArtifactsReadRangeParams(HostCallParams):
    artifact_id: str
    offset: int = 0
    length: int = 65536


class ArtifactsOpenStreamParams(HostCallParams):
    artifact_id: str


class ArtifactsOpenStreamResult(WireModel):
    """Nothing: the bytes came in the chunks."""


class ArtifactsCreateParams(HostCallParams):
    """Paddock's own, optional."""

    artifact_type: str
    content_base64: str
    mime_type: str | None = None
    name: str | None = None
    metadata: dict[str, Any] | None = None


# --- state and storage --------------------------------------------------------------------------------------------


class StateGetParams(HostCallParams):
    scope: str
    key: str


class StateGetResult(WireModel):
    value: Any = None
    found: bool
    version: str | None = None
    """Paddock's own, optional: changes whenever the value does."""


class StateSetParams(HostCallParams):
    scope: str
    key: str
    value: Any = None
    expected_version: str | None = None
    """Paddock's own, optional: write only if the value there still has this version; "" means there is none yet."""


class StateSetResult(WireModel):
    ok: bool = True
    version: str | None = None
    """Paddock's own, optional: of the value as it is now."""


class StateDeleteParams(HostCallParams):
    scope: str
    key: str


class StorageGetParams(HostCallParams):
    area: str
    key: str
    offset: int | None = None
    """Paddock's own, optional: where to go on reading a value that one answer could not carry."""


class StorageGetResult(WireModel):
    value_base64: str | None = None
    found: bool
    size_bytes: int | None = None
    version: str | None = None
    has_more: bool = False
    """Paddock's own, optional, all three: how large the whole value is, which one it is, whether more follows."""


class StorageSetParams(HostCallParams):
    area: str
    key: str
    value_base64: str
    offset: int | None = None
    more: bool = False
    """Paddock's own, optional, both: this is the part at `offset`, and more follow. The last part makes the value."""


class StorageDeleteParams(HostCallParams):
    area: str
    key: str


class StorageListParams(HostCallParams):
    area: str
    prefix: str | None = None
    after: str | None = None
    """Paddock's own, optional: go on after this key."""


class StorageListResult(WireModel):
    keys: list[str]
    has_more: bool = False


class Done(WireModel):
    ok: bool = True


class Deleted(WireModel):
    deleted: bool


# --- steering and platform ----------------------------------------------------------------------------------------


class SteeringPullParams(HostCallParams):
    """Paddock's own, optional. `limit` bounds how many are handed over at once."""

    limit: int | None = None


class PlatformRequestActionParams(HostCallParams):
    action: str
    target: dict[str, Any] = {}
    payload: dict[str, Any] = {}


class PlatformRequestActionResult(WireModel):
    """`status` says what became of it (recorded, pending, done, ...); a pending one names its approval."""

    status: str
    approval_id: str | None = None


# --- the table ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HostCall:
    """One call: its params, its answer, the permissions that open it, and for a streaming call what each chunk holds.

    Any one of the permissions is enough. Without any, something else in the manifest opens the call.
    """

    params: type[HostCallParams]
    result: type[WireModel]
    permissions: tuple[tuple[str, str], ...] = ()
    chunk: type[WireModel] | None = None

    @property
    def streams(self) -> bool:
        return self.chunk is not None


_ANY_STORAGE = tuple(("storage", area) for area in get_args(StorageArea))

HOST_CALLS: Final[Mapping[str, HostCall]] = MappingProxyType(
    {
        "models.invoke": HostCall(ModelsInvokeParams, ModelsInvokeResult, (("models", "invoke"),)),
        "models.stream": HostCall(ModelsStreamParams, ModelsStreamResult, (("models", "stream"),), ModelsStreamChunk),
        "models.rerank": HostCall(ModelsRerankParams, ModelsRerankResult, (("models", "rerank"),)),
        "tools.get_detail": HostCall(ToolsGetDetailParams, ToolDetail, (("tools", "detail"),)),
        "tools.call": HostCall(ToolsCallParams, ToolsCallResult, (("tools", "call"),)),
        "knowledge.retrieve": HostCall(
            KnowledgeRetrieveParams, KnowledgeRetrieveResult, (("knowledge_bases", "retrieve"),)
        ),
        "history.page": HostCall(HistoryPageParams, HistoryPage, (("history", "page"),)),
        "history.search": HostCall(HistorySearchParams, HistorySearchResult, (("history", "search"),)),
        "events.get": HostCall(EventsGetParams, AgentEventRecord, (("events", "get"),)),
        "events.page": HostCall(EventsPageParams, EventPage, (("events", "page"),)),
        "artifacts.metadata": HostCall(ArtifactsMetadataParams, ArtifactMetadata, (("artifacts", "metadata"),)),
        "artifacts.read_range": HostCall(ArtifactsReadRangeParams, ArtifactReadResult, (("artifacts", "read"),)),
        "artifacts.open_stream": HostCall(
            ArtifactsOpenStreamParams, ArtifactsOpenStreamResult, (("artifacts", "read"),), ArtifactChunk
        ),
        "artifacts.create": HostCall(ArtifactsCreateParams, ArtifactMetadata, (("artifacts", "create"),)),
        "state.get": HostCall(StateGetParams, StateGetResult, _ANY_STORAGE),
        "state.set": HostCall(StateSetParams, StateSetResult, _ANY_STORAGE),
        "state.delete": HostCall(StateDeleteParams, Deleted, _ANY_STORAGE),
        "storage.get": HostCall(StorageGetParams, StorageGetResult, _ANY_STORAGE),
        "storage.set": HostCall(StorageSetParams, Done, _ANY_STORAGE),
        "storage.delete": HostCall(StorageDeleteParams, Deleted, _ANY_STORAGE),
        "storage.list": HostCall(StorageListParams, StorageListResult, _ANY_STORAGE),
        "steering.pull": HostCall(SteeringPullParams, SteeringPullResult),
        "platform.request_action": HostCall(PlatformRequestActionParams, PlatformRequestActionResult),
    }
)
METHODS: Final = tuple(HOST_CALLS)
