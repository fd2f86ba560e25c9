"""Resources one run was granted, as its runner sees them. Ids are opaque; empty operations mean none."""

# ruff: noqa: RUF012 - pydantic gives every instance its own copy of a default
from typing import Any

from paddock_sdk.protocol.model import WireModel


class ModelResource(WireModel):
    model_id: str
    model_type: str | None = None
    provider: str | None = None
    operations: list[str] = []
    context_window: int | None = None
    """Paddock's own, optional: tokens that fit into one question, where the host knows."""
    images: bool | None = None
    """Paddock's own, optional: whether it can look at pictures, where the host knows."""


class ToolResource(WireModel):
    """A tool. `tool_type` "frontend" is for the model to see and the client to answer, never for `tools.call`."""

    tool_name: str
    tool_type: str | None = None
    description: str | None = None
    operations: list[str] = []
    parameters: dict[str, Any] | None = None


class KnowledgeBaseResource(WireModel):
    kb_id: str
    kb_name: str | None = None
    kb_type: str | None = None
    operations: list[str] = []


class FileResource(WireModel):
    """A file of the settings or of a knowledge base; read it with `artifacts.*` under its id."""

    file_id: str
    file_name: str | None = None
    mime_type: str | None = None
    source: str | None = None


class SkillResource(WireModel):
    skill_name: str
    display_name: str | None = None
    description: str | None = None
    path: str | None = None
    """The directory that holds its SKILL.md, readable for the runner."""


class McpResource(WireModel):
    """An MCP endpoint of this run, for runners that wrap a program speaking MCP."""

    name: str
    transport: str = "http"
    url: str | None = None
    """`http://...`, or `unix:/path` where the run has no network: `paddock_sdk.endpoint` makes an address of it."""
    headers: dict[str, str] = {}
    token_env: str | None = None
    """Set for the run's own endpoint: the variable in which a program is to be given the secret `mcp_token`."""


class StorageResource(WireModel):
    plugin_storage: bool = False
    workspace_storage: bool = False
    binding_storage: bool = False


class AgentResources(WireModel):
    """The grant, listed. History, events and artifacts are not listed here: see ContextAPICapabilities."""

    models: list[ModelResource] = []
    tools: list[ToolResource] = []
    knowledge_bases: list[KnowledgeBaseResource] = []
    files: list[FileResource] = []
    storage: StorageResource = StorageResource.model_construct()  # not validated: importing compiles nothing
    platform_capabilities: dict[str, Any] = {}
    skills: list[SkillResource] = []
    """Paddock's own, optional."""
    mcp: list[McpResource] = []
    """Paddock's own, optional."""
