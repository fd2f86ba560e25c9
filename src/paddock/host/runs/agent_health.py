"""Health of agents: whether each could answer now, and what is wrong if not. Starts runners for manifests only."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from paddock.host.agents.agents import AgentBinding, Agents
from paddock.host.runs.authority import Authority
from paddock.rules.agents.config import masked, masked_servers
from paddock.rules.errors import HostError
from paddock.rules.values import Value
from paddock_sdk.protocol.manifest import AgentRunnerManifest

LOOK_SECONDS = 3.0
"""How long to wait for runners that are starting; they are asked again next time."""


HealthState = Literal["ok", "problem", "unknown"]


class Health(Value, frozen=True):
    state: HealthState
    problem: str | None = None
    """Text for administrators."""
    cause: str | None = None
    """The cause of the problem, for operators only."""
    manifest: AgentRunnerManifest | None = None

    def problem_for(self, *, operator: bool) -> str | None:
        return self.cause or self.problem if operator else self.problem


class AgentHealth:
    def __init__(self, agents: Agents, authority: Authority) -> None:
        self._agents = agents
        self._authority = authority

    @property
    def file_problem(self) -> str | None:
        """Why the present content of the agents file is not in force."""
        return self._agents.problem

    async def check(self, workspace: str, bindings: Sequence[AgentBinding]) -> list[Health]:
        """The health of each agent. Starts runners not known yet, and waits a little for them."""
        asking = [asyncio.ensure_future(self._authority.prepare(one.agent_id, workspace)) for one in bindings]
        if asking:
            _, late = await asyncio.wait(asking, timeout=LOOK_SECONDS)
            for task in late:
                task.cancel()
        return [self.known(binding, workspace) for binding in bindings]

    async def manifest(self, runner_id: str, workspace: str) -> AgentRunnerManifest | None:
        """Ask a runner for its manifest; None if there is no such runner or it takes too long."""
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                return await self._authority.gateway.manifest(runner_id, workspace)
        except (HostError, TimeoutError):
            return None

    def known(self, binding: AgentBinding, workspace: str) -> Health:
        """The health of an agent as far as it is known without asking its runner."""
        manifest = self._authority.manifest(binding, workspace)
        refusal = self._refusal(binding, workspace)
        if refusal is not None:
            return Health("problem", refusal.message, refusal.for_operators, manifest)
        if manifest is None:
            return Health("unknown")
        missing = self._authority.missing(binding, workspace)
        return Health("problem", "; ".join(missing), manifest=manifest) if missing else Health("ok", manifest=manifest)

    def unable(self, workspace: str) -> int:
        """Count the agents of the file that are known to be unable to answer."""
        shared = (one for one in self._agents.list(workspace) if self._agents.in_file(one.agent_id))
        return sum(1 for one in shared if self._refusal(one, workspace) is not None)

    def _refusal(self, binding: AgentBinding, workspace: str) -> HostError | None:
        """Why a run of the agent would not start: its settings are wrong, or its runner keeps failing."""
        return self._authority.refusal(binding.agent_id, workspace) or self._authority.trouble(binding, workspace)


def shown_definition(binding: AgentBinding, manifest: AgentRunnerManifest | None) -> Mapping[str, Any]:
    """The definition of an agent as written, with its secrets masked."""
    shown = dict(binding.defined)
    if "config" in shown:
        shown["config"] = masked(shown["config"], manifest.config_schema if manifest is not None else None)
    if "mcp" in shown:
        shown["mcp"] = masked_servers(shown["mcp"])
    return shown
