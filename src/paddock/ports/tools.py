"""Tools as the host sees them: named, described, called. A tool is a function, an MCP server's, or built in."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from paddock.rules.agents.resources import ToolInfo
from paddock.rules.values import Value


class ToolUse(Value, frozen=True):
    """One call of a tool, and on whose behalf it is made."""

    call_id: str
    name: str
    parameters: Mapping[str, Any]
    workspace_id: str
    user_id: str
    agent_id: str
    session_id: str
    run_id: str
    deadline_at: float


class ToolFile(Value, frozen=True):
    """A picture or another file that a tool gave back. Its kind and its name are what the tool says, no more."""

    content: bytes
    mime_type: str | None = None
    name: str | None = None


class ToolAnswer(Value, frozen=True):
    """Answer of a tool as JSON bytes. An error is an answer the model can read, not an exception."""

    content: bytes
    is_error: bool = False
    unknown: bool = False
    """The call was made and nobody waited for its end: it may have done its work, or may still do it."""
    parts: Sequence[Mapping[str, Any] | ToolFile] = ()
    """Where files came along: everything it said, in order, instead of `content`."""


class Tools(Protocol):
    def list(self, workspace: str) -> Sequence[ToolInfo]: ...
    def find(self, workspace: str, name: str) -> ToolInfo | None: ...
    async def call(self, use: ToolUse) -> ToolAnswer:
        """Make the call once. Never raises for what the tool does; ends by the deadline."""
        ...
