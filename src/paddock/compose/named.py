"""Models, tools and MCP servers that the agents file defines, made at start and again when the file changes. Those of
the settings stay as they are while the host runs."""

from collections.abc import Callable, Coroutine, Iterable, Sequence
from pathlib import Path
from typing import Any

import structlog

from paddock.agent_program import load_program
from paddock.compose.parts import mark_of, models_of, revealed, servers_in
from paddock.host.agents.file import AgentsFileError, Defined
from paddock.models.catalog import ModelCatalog
from paddock.models.loading import ModelSettingsError
from paddock.rules.agents.specs import NamedResources
from paddock.settings import Settings
from paddock.tools.functions import FunctionTool, FunctionTools, ToolDefinitionError
from paddock.tools.loading import load_tools
from paddock.tools.mcp import McpTools, check_names

log = structlog.get_logger("paddock.agents")


class NamedParts:
    def __init__(
        self,
        settings: Settings,
        named: NamedResources,
        further: Sequence[FunctionTool],
        *,
        clock: Callable[[], float],
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        live: Callable[[], Iterable[str]],
    ) -> None:
        """`further` are the functions of a Python program. Runs in `live` keep the functions they began with. Raises
        ModelSettingsError or ToolDefinitionError."""
        self._settings = settings
        self._clock = clock
        self._spawn = spawn
        self._named = named
        self._lasting = load_tools(settings.tools)
        self._further = further
        self._live = live
        self.models = models_of(settings, clock, named.models)
        self.functions = FunctionTools(
            [*self._lasting, *further, *self._tools(named, further)],
            clock=clock,
            timeout_seconds=settings.tool_timeout_seconds,
        )
        mark = {"PADDOCK_MARK": mark_of(settings.data)}
        self.servers = McpTools(servers_in(settings, named), reveal=revealed, mark=mark, clock=clock)

    def prepare(
        self, named: NamedResources, tools_anew: bool, further: Sequence[FunctionTool] | None = None
    ) -> Callable[[], None]:
        """Prepare what the file defines now, with the functions of a program in `further`; call the result to put it in
        force. Raises AgentsFileError."""
        own = self._further if further is None else further
        try:
            models = (
                models_of(self._settings, self._clock, named.models) if named.models != self._named.models else None
            )
            anew = tools_anew or named.tools != self._named.tools or further is not None
            tools = [*own, *self._tools(named, own)] if anew else None
            check_names(servers := servers_in(self._settings, named))
        except (ModelSettingsError, ToolDefinitionError) as error:
            raise AgentsFileError(str(error)) from error

        def put_in_force() -> None:
            if models is not None:
                self._offer(models)
            if tools is not None:
                self.functions.take([*self._lasting, *tools], self._live())
                names = ", ".join(tool.info.name for tool in tools)
                log.info("the tools of the agents file are in force", action="agents.reload", tools=names)
            if named.mcp_servers != self._named.mcp_servers:
                self.servers.take(servers)
                log.info("other MCP servers are in force", action="agents.reload", servers=", ".join(servers))
            self._named, self._further = named, own

        return put_in_force

    def _offer(self, models: ModelCatalog) -> None:
        self._spawn(self.models.replace(models.lineup))
        offered = ", ".join(models.lineup.providers)
        log.info("other models are in force", action="agents.reload", models=offered)

    def _tools(self, named: NamedResources, beside: Sequence[FunctionTool]) -> Sequence[FunctionTool]:
        places = [place for place in dict.fromkeys(named.tools) if place not in self._settings.tools]
        return load_tools(places, beside=[*self._lasting, *beside])


class WatchedProgram:
    """A Python program that defines agents, read again when it changes."""

    def __init__(self, path: Path, parts: NamedParts) -> None:
        self._path = path
        self._parts = parts
        self._functions: Sequence[FunctionTool] = ()

    def read(self) -> Defined:
        """Raises AgentsFileError."""
        program = load_program(self._path)
        self._functions = program.tools
        return program.defined

    def prepare(self, named: NamedResources, tools_anew: bool) -> Callable[[], None]:
        return self._parts.prepare(named, tools_anew, self._functions)
