"""Models, tools and MCP servers that the agents file defines, made at start and again when the file changes. Those of
the settings stay as they are while the host runs."""

from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
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


@dataclass(eq=False)
class NamedParts:
    settings: Settings
    named: NamedResources
    further: Sequence[FunctionTool]
    """The functions of a Python program."""
    _: KW_ONLY
    clock: Callable[[], float]
    spawn: Callable[[Coroutine[Any, Any, None]], object]
    live: Callable[[], Iterable[str]]
    """Runs that keep the functions they began with."""

    def __post_init__(self) -> None:
        """Raises ModelSettingsError or ToolDefinitionError."""
        self._lasting = load_tools(self.settings.tools)
        self.models = models_of(self.settings, self.clock, self.named.models)
        self.functions = FunctionTools(
            [*self._lasting, *self.further, *self._tools(self.named, self.further)],
            clock=self.clock,
            timeout_seconds=self.settings.tool_timeout_seconds,
        )
        mark = {"PADDOCK_MARK": mark_of(self.settings.data)}
        self.servers = McpTools(servers_in(self.settings, self.named), reveal=revealed, mark=mark, clock=self.clock)

    def prepare(
        self, named: NamedResources, tools_anew: bool, further: Sequence[FunctionTool] | None = None
    ) -> Callable[[], None]:
        """Prepare what the file defines now, with the functions of a program in `further`; call the result to put it in
        force. Raises AgentsFileError."""
        own = self.further if further is None else further
        try:
            models = models_of(self.settings, self.clock, named.models) if named.models != self.named.models else None
            anew = tools_anew or named.tools != self.named.tools or further is not None
            tools = [*own, *self._tools(named, own)] if anew else None
            check_names(servers := servers_in(self.settings, named))
        except (ModelSettingsError, ToolDefinitionError) as error:
            raise AgentsFileError(str(error)) from error

        def put_in_force() -> None:
            if models is not None:
                self._offer(models)
            if tools is not None:
                self.functions.take([*self._lasting, *tools], self.live())
                names = ", ".join(tool.info.name for tool in tools)
                log.info("the tools of the agents file are in force", action="agents.reload", tools=names)
            if named.mcp_servers != self.named.mcp_servers:
                self.servers.take(servers)
                log.info("other MCP servers are in force", action="agents.reload", servers=", ".join(servers))
            self.named, self.further = named, own

        return put_in_force

    def _offer(self, models: ModelCatalog) -> None:
        self.spawn(self.models.replace(models.lineup))
        offered = ", ".join(models.lineup.providers)
        log.info("other models are in force", action="agents.reload", models=offered)

    def _tools(self, named: NamedResources, beside: Sequence[FunctionTool]) -> Sequence[FunctionTool]:
        places = [place for place in dict.fromkeys(named.tools) if place not in self.settings.tools]
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
