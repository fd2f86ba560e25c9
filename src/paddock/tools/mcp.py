"""MCP servers of this host as one source of tools. The `Tools` port."""

from asyncio import Task
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any

from paddock.ports.tools import ToolAnswer, ToolInfo, ToolUse
from paddock.rules.agents.specs import McpServerSpec, server_name_problem
from paddock.tools.functions import ToolDefinitionError
from paddock.tools.mcp_server import McpServer

Spawn = Callable[[Coroutine[Any, Any, None]], Task[None]]


class McpTools:
    def __init__(
        self,
        specs: Mapping[str, McpServerSpec],
        *,
        reveal: Callable[[str], str],
        mark: Mapping[str, str],
        clock: Callable[[], float],
    ) -> None:
        check_names(specs)
        self._make = partial(McpServer, reveal=reveal, mark=mark, clock=clock)
        self._spawn: Spawn | None = None
        self._running: dict[McpServer, Task[None]] = {}
        self.servers = [self._make(name, spec) for name, spec in specs.items()]

    def start(self, spawn: Spawn) -> None:
        """Start every server in the background; the host does not wait for any of them."""
        self._spawn = spawn
        for server in self.servers:
            self._running[server] = spawn(server.run())

    def take(self, specs: Mapping[str, McpServerSpec]) -> None:
        """These are the servers from now on: those that stay as they were go on, others are ended or started."""
        check_names(specs)
        same = {server.name: server for server in self.servers if specs.get(server.name) == server.spec}
        for server in self.servers:
            if server.name not in same and (task := self._running.pop(server, None)) is not None:
                task.cancel()
        self.servers = [same.get(name) or self._make(name, spec) for name, spec in specs.items()]
        for server in self.servers:
            if self._spawn is not None and server not in self._running:
                self._running[server] = self._spawn(server.run())

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


def check_names(specs: Mapping[str, McpServerSpec]) -> None:
    """Raises ToolDefinitionError."""
    for name in specs:
        if (problem := server_name_problem(name)) is not None:
            raise ToolDefinitionError(f"mcp_servers.{name}: {problem}")
