"""Any harness as a runner of ours: its settings, and a turn for each run. The harness's own language is its wire's."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from paddock_runners.harness.config import Config, ConfigError
from paddock_runners.harness.heard import HarnessError
from paddock_runners.harness.place import Place
from paddock_runners.harness.process import HarnessProcess
from paddock_runners.harness.turn import Turn
from paddock_runners.harness.wire import Wire
from paddock_sdk import (
    AgentRunner,
    AgentRunnerCapabilities,
    AgentRunnerPermissions,
    HostApi,
    HostCallError,
    Results,
    RunContext,
    failed,
)
from paddock_sdk.endpoint import run_endpoint
from paddock_sdk.projection import Harness
from paddock_sdk.protocol.manifest import AgentRunnerContextPolicy

PERMISSIONS = AgentRunnerPermissions(
    tools=["detail", "call"],
    knowledge_bases=["list", "retrieve"],
    history=["page", "search"],
    events=["get"],
    artifacts=["metadata", "read", "create"],
    storage=["plugin"],
    mcp=["use"],
    working_directory=["use"],
)
"""The most a harness is ever given. Most of it reaches the harness over MCP, cut down to what the agent was granted."""


class HarnessRunner(AgentRunner):
    """Base class of harness runners. A subclass names its harness, settings, command line and wire."""

    harness: Harness
    title: str
    permissions = PERMISSIONS
    context = AgentRunnerContextPolicy(supports_history_search=True)
    host_only = True
    capabilities = AgentRunnerCapabilities(
        streaming=True,
        tool_calling=True,
        multimodal_input=True,
        interrupt=True,
        stateful_session=True,
        self_managed_context=True,
    )

    @abstractmethod
    def settings(self, said: Mapping[str, Any]) -> Config:
        """Raises ConfigError."""

    def harness_of(self, config: Config) -> Harness:  # noqa: ARG002 - one runner may drive several
        return self.harness

    def title_of(self, config: Config) -> str:  # noqa: ARG002 - as above
        """Name for people."""
        return self.title

    @abstractmethod
    def command(self, config: Config, place: Place, session_id: str | None) -> tuple[list[str], dict[str, str]]:
        """The command line, and variables besides those every harness gets."""

    @abstractmethod
    def wire(self, process: HarnessProcess, config: Config, place: Place) -> Wire: ...

    async def run(self, ctx: RunContext, api: HostApi) -> Results:
        try:
            config = self.settings(ctx.config)
        except ConfigError as problem:
            yield failed("agent.config_invalid", str(problem))
            return
        try:
            async with run_endpoint(ctx, api) as endpoint:
                async for result in Turn(self, ctx, api, config).results(endpoint):
                    yield result
        except ConfigError as problem:
            yield failed("agent.config_invalid", str(problem))
        except HarnessError as problem:
            yield failed(problem.code, f"{self.title_of(config)}: {problem}", problem.retryable)
        except HostCallError as error:
            yield failed(error.code, error.error.message, error.retryable)
