"""Manifest of a runner: identity, capabilities, the permissions it may ask for, the form of its settings."""

# ruff: noqa: RUF012 - pydantic gives every instance its own copy of a default
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from paddock_sdk.protocol.model import WireModel
from paddock_sdk.protocol.version import PROTOCOL_VERSION


def _as_locales(value: object) -> object:
    return {"en_US": value} if isinstance(value, str) else value


I18nObject = Annotated[dict[str, str], BeforeValidator(_as_locales)]
"""Text by locale, such as {"en_US": "Echo"}. A plain string is read as en_US."""

ModelOperation = Literal["invoke", "stream", "rerank"]
ToolOperation = Literal["detail", "call"]
KnowledgeOperation = Literal["list", "retrieve"]
HistoryOperation = Literal["page", "search"]
EventOperation = Literal["get", "page"]
ArtifactOperation = Literal["metadata", "read", "create"]
"""`create` is Paddock's own, optional."""
StorageArea = Literal["plugin", "workspace", "binding"]
FileOrigin = Literal["config", "knowledge"]
HistoryScope = Literal["conversation", "workspace"]
Use = Literal["use"]


class DynamicFormItemSchema(WireModel):
    """One field of the settings form. `type` is open: string, text, integer, number, boolean, select, password, ..."""

    type: str
    name: str
    label: I18nObject = {}
    description: I18nObject | None = None
    required: bool = False
    default: Any = None
    options: list[dict[str, Any]] | None = None
    host_only: bool | None = None
    """Paddock's own, optional: it names a program, a path or an address, so only whoever runs the host may set it.
    Of a field that does not say, the host judges by its name."""


class AgentRunnerCapabilities(WireModel):
    """Capabilities of a runner, each yes or no."""

    streaming: bool = False
    tool_calling: bool = False
    knowledge_retrieval: bool = False
    multimodal_input: bool = False
    event_context: bool = True
    platform_api: bool = False
    interrupt: bool = False
    stateful_session: bool = False
    self_managed_context: bool = True
    steering: bool = False
    """Paddock's own, optional: input that arrives during a run is offered through `steering.pull`."""


class AgentRunnerPermissions(WireModel):
    """The most the runner will ever ask for. What one run gets is this, cut by the binding and by the run's scope."""

    models: list[ModelOperation] = []
    tools: list[ToolOperation] = []
    knowledge_bases: list[KnowledgeOperation] = []
    history: list[HistoryOperation] = []
    events: list[EventOperation] = []
    artifacts: list[ArtifactOperation] = []
    storage: list[StorageArea] = []
    files: list[FileOrigin] = []
    platform_api: list[str] = []
    history_scope: HistoryScope = "conversation"
    """Paddock's own, optional: `workspace` asks to read other conversations of the workspace."""
    mcp: list[Use] = []
    """Paddock's own, optional: reach what the run was granted over MCP, at an endpoint of its own."""
    working_directory: list[Use] = []
    """Paddock's own, optional: a directory on the host's machine that is kept for the conversation."""


class AgentRunnerContextPolicy(WireModel):
    """How the runner builds its working context. Older fields (`bootstrap`, `ownership`, ...) are kept, not used."""

    supports_history_pull: bool = True
    supports_history_search: bool = False
    supports_artifact_pull: bool = True
    owns_compaction: bool = True
    wants_static_context_refs: bool = True


class AgentRunnerManifest(WireModel):
    """One runner, as its plugin offers it."""

    id: str
    """`plugin:author/name/runner`, see paddock_sdk.protocol.ids.RunnerId"""
    name: str
    label: I18nObject
    description: I18nObject | None = None
    protocol_version: str = PROTOCOL_VERSION
    capabilities: AgentRunnerCapabilities
    permissions: AgentRunnerPermissions
    context: AgentRunnerContextPolicy
    config_schema: list[DynamicFormItemSchema] = []
    host_only: bool = False
    """Paddock's own, optional: its agents act on the machine it runs on, so only whoever runs the host makes them."""
    metadata: dict[str, Any] = {}


class ListAgentRunnersResponse(WireModel):
    """The answer to `list_agent_runners`."""

    runners: list[AgentRunnerManifest]
