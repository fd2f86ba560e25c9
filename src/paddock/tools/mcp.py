"""All MCP servers of this host as one source of tools. The `Tools` port."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from paddock.ports.tools import ToolAnswer, ToolInfo, ToolUse
from paddock.rules.mcp_specs import McpServerSpec, name_problem
from paddock.tools.mcp_server import McpServer
from paddock.tools.signatures import ToolDefinitionError


class McpTools:
    def __init__(
        self,
        specs: Mapping[str, McpServerSpec],
        *,
        reveal: Callable[[str], str],
        mark: Mapping[str, str],
        clock: Callable[[], float],
    ) -> None:
        for name in specs:
            if (problem := name_problem(name)) is not None:
                raise ToolDefinitionError(f"mcp_servers.{name}: {problem}")
        self.servers = [McpServer(name, spec, reveal=reveal, mark=mark, clock=clock) for name, spec in specs.items()]

    def start(self, spawn: Callable[[Coroutine[Any, Any, None]], object]) -> None:
        """Start every server in the background; the host does not wait for any of them."""
        for server in self.servers:
            spawn(server.run())

    def list(self, workspace: str) -> Sequence[ToolInfo]:  # noqa: ARG002 - the same for every workspace
        return [info for server in self.servers for _, info in server.tools.values()]

    def find(self, workspace: str, name: str) -> ToolInfo | None:  # noqa: ARG002 - as above
        server = self._server_of(name)
        return server.tools[name][1] if server else None

    async def call(self, use: ToolUse) -> ToolAnswer:
        server = self._server_of(use.name)
        assert server is not None, "the catalog asks the source that has the tool"
        return await server.call(use)

    def _server_of(self, name: str) -> McpServer | None:
        return next((server for server in self.servers if name in server.tools), None)
