"""Authority of an agent's runs, worked out before it is needed and kept while nothing it follows from changes.
Every layer is here: the runner's manifest, the agent's settings and policies, the resources of the workspace.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from paddock.host.agents.agents import AgentBinding, Agents
from paddock.host.agents.secrets import SecretError, resolved
from paddock.host.calls.workspace_resources import WorkspaceResources
from paddock.ports import RunnerGateway
from paddock.rules.access.host_only import NOTHING_OPENED, ApiAgents, refused_over_api
from paddock.rules.access.permissions import allowance, granted_files
from paddock.rules.agents.config import passwords_of, problems, with_defaults
from paddock.rules.agents.resources import NOTHING_OFFERED, Offered, not_offered
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.run.context import AgentExtras, ResolvedAgent, resolved_agent
from paddock.rules.values import Value
from paddock_sdk.protocol.manifest import AgentRunnerManifest

MAX_KEPT = 4096
"""Agents whose part is remembered; more are worked out again when they speak."""
CONFIG_INVALID = "agent.config_invalid"
IN_FILE_ONLY = "directories of the host's machine are named in the agents file only"
OTHERS_WORDS = "agents that read everybody's conversations are written in the agents file only"
ISOLATION_TOO_LOW = "agent.isolation_too_low"


class _Known(Value, frozen=True):
    """A part, and what it follows from: each the very same thing until it changes."""

    binding: AgentBinding
    manifest: AgentRunnerManifest
    there: Offered
    part: ResolvedAgent


class Authority:
    def __init__(
        self,
        *,
        gateway: RunnerGateway,
        agents: Agents,
        offered: frozenset[str],
        resources: WorkspaceResources | None = None,
        opened: ApiAgents = NOTHING_OPENED,
    ) -> None:
        """`opened`: what agents of the API may name, though it belongs to whoever runs the host."""
        self._opened = opened
        self._gateway = gateway
        self._agents = agents
        self._offered = offered
        self._resources = resources
        self._manifests: dict[tuple[str, str], AgentRunnerManifest] = {}
        self._parts: dict[tuple[str, str], _Known] = {}
        self._refused: dict[tuple[str, str], HostError] = {}
        self._prepared: dict[tuple[str, str], object] = {}
        """Agents that were prepared, with what was in force then; not those that ask for resources, which change."""

    async def prepare(self, agent_id: str | None, workspace: str, *, start: bool = True) -> None:
        """Learn what an agent's runner asks for, before a run of it is authorised. A failure shows when it starts.

        `start`: whether a runner that is not known yet is started to ask it; else it stays unknown.
        """
        agents, place = self._agents, (workspace, agent_id or "")
        in_force = agents.in_force(workspace)
        if self._prepared.get(place) is in_force:
            return
        binding = agents.get(agent_id or "", workspace)
        if binding is None:
            return
        try:
            manifest = self._gateway.known_manifest(binding.runner_id, workspace)
            if manifest is None and not start:
                self._manifests.pop((workspace, binding.runner_id), None)
                return
            manifest = manifest or await self._gateway.manifest(binding.runner_id, workspace)
            self._remember(workspace, manifest)
            if self._resources is not None and _asks_for_resources(manifest):
                await self._resources.refresh(workspace, files="knowledge" in manifest.permissions.files)
            self._settled(binding, manifest, workspace)
            self._refused.pop(place, None)
            if self._resources is None or not _asks_for_resources(manifest):
                self._remember_prepared(place, in_force)
        except HostError as error:
            if error.code is ErrorCode.NOT_FOUND or error.retryable:
                self._manifests.pop((workspace, binding.runner_id), None)
            self._refuse(place, error)

    async def ask(self, runner_id: str, workspace: str) -> AgentRunnerManifest:
        """Ask a runner for its manifest. Raises HostError."""
        return await self._gateway.manifest(runner_id, workspace)

    def part(self, binding: AgentBinding, workspace: str) -> ResolvedAgent | None:
        """Resolved agent; None when it cannot run."""
        manifest = self._manifests.get((workspace, binding.runner_id))
        if manifest is None:
            return None
        try:
            return self._settled(binding, manifest, workspace)
        except HostError as error:
            self._refuse((workspace, binding.agent_id), error)
            return None

    def manifest(self, binding: AgentBinding, workspace: str) -> AgentRunnerManifest | None:
        """Manifest of the agent's runner, if it is known."""
        return self._manifests.get((workspace, binding.runner_id))

    def refusal(self, agent_id: str, workspace: str) -> HostError | None:
        """Why runs of this agent cannot be started now, as far as is known."""
        return self._refused.get((workspace, agent_id))

    def trouble(self, binding: AgentBinding, workspace: str) -> HostError | None:
        """Why a run of it would not begin now, if its runner's processes keep failing."""
        return self._gateway.trouble(binding.runner_id, workspace)

    def isolation(self, binding: AgentBinding, workspace: str) -> str:
        """Isolation of the agent's next run: a level, or a word for a place we do not control."""
        return self._gateway.isolation_of(binding.runner_id, workspace, binding.isolation)

    def missing(self, binding: AgentBinding, workspace: str) -> list[str]:
        """Resources the agent's owner names and the workspace does not have: it runs, but not as was meant."""
        there = self._there(workspace)
        policy = binding.policy
        return [
            *not_offered("models", policy.models, (model.model_id for model in there.models)),
            *not_offered("tools", policy.tools, (tool.name for tool in there.tools)),
            *not_offered("knowledge_bases", policy.knowledge_bases, (base.kb_id for base in there.bases)),
        ]

    # --- within

    def _there(self, workspace: str) -> Offered:
        return NOTHING_OFFERED if self._resources is None else self._resources.known(workspace)

    def _refuse(self, place: tuple[str, str], error: HostError) -> None:
        if len(self._refused) >= MAX_KEPT:
            self._refused.clear()
        self._refused[place] = error

    def _remember_prepared(self, place: tuple[str, str], in_force: object) -> None:
        if len(self._prepared) >= MAX_KEPT:
            self._prepared.clear()
        self._prepared[place] = in_force

    def _remember(self, workspace: str, manifest: AgentRunnerManifest) -> None:
        if len(self._manifests) >= MAX_KEPT:
            self._manifests.clear()
        self._manifests[workspace, manifest.id] = manifest

    def _settled(self, binding: AgentBinding, manifest: AgentRunnerManifest, workspace: str) -> ResolvedAgent:
        """Raises HostError when the agent's settings do not fit its runner."""
        there = self._there(workspace) if _asks_for_resources(manifest) else NOTHING_OFFERED
        known = self._parts.get((workspace, binding.agent_id))
        if known is not None and known.binding is binding and known.manifest is manifest and known.there is there:
            return known.part
        if len(self._parts) >= MAX_KEPT:
            self._parts.clear()
        part = self._work_out(binding, manifest, there, workspace)
        self._parts[workspace, binding.agent_id] = _Known(binding, manifest, there, part)
        return part

    def _work_out(
        self, binding: AgentBinding, manifest: AgentRunnerManifest, there: Offered, workspace: str
    ) -> ResolvedAgent:
        self._check_isolation(binding, workspace)
        allowed = allowance(manifest, binding.policy, self._offered, there)
        config, extras = settle_config(binding, manifest, self._opened)
        part = resolved_agent(
            allowed,
            config,
            wants_static_refs=manifest.context.wants_static_context_refs,
            there=there,
            files=granted_files(manifest.permissions, binding.policy, there, allowed.knowledge_bases),
            extras=extras,
        )
        return msgspec.structs.replace(part, checked_for=manifest) if binding.origin == "api" else part

    def _check_isolation(self, binding: AgentBinding, workspace: str) -> None:
        if binding.isolation is None:
            return
        level = self._gateway.isolation_of(binding.runner_id, workspace, binding.isolation)
        if level not in ("L0", "L1") or level < binding.isolation:
            text = (
                f"agent {binding.agent_id!r} wants isolation {binding.isolation}, and its runner can only have {level}"
            )
            raise HostError(ErrorCode.INVALID_ARGUMENT, text, details={"run_code": ISOLATION_TOO_LOW})


def _asks_for_resources(manifest: AgentRunnerManifest) -> bool:
    asked = manifest.permissions
    return bool(asked.models or asked.tools or asked.knowledge_bases or asked.files)


def settle_config(
    binding: AgentBinding, manifest: AgentRunnerManifest, opened: ApiAgents = NOTHING_OPENED
) -> tuple[Mapping[str, Any], AgentExtras]:
    """The config as the runner gets it: checked, defaults filled in, secrets looked up. Raises HostError."""
    form = manifest.config_schema
    found = problems(binding.config, form)
    if binding.origin == "api":
        found += leads_outside(binding) or refused_over_api(manifest, binding.config, binding.extras.mcp, opened)
    if found:
        raise _invalid(binding, "; ".join(found[:5]))
    try:
        config = resolved(with_defaults(binding.config, form), passwords_of(form), binding.base, "config")
        servers = resolved({"mcp": list(binding.extras.mcp)}, frozenset(), binding.base, "mcp")["mcp"]
    except SecretError as error:
        if binding.base is None:
            raise _invalid(binding, str(error)) from error
        raise _invalid(binding, "a secret that the agents file names cannot be had", str(error)) from error
    return config, msgspec.structs.replace(binding.extras, mcp=tuple(servers))


def leads_outside(binding: AgentBinding) -> list[str]:
    """Fields of an agent, whatever its runner, that lead further than an agent of the API may."""
    extras = binding.extras
    paths: dict[str, object] = {"working_directory": extras.working_directory, "readable": extras.readable or None}
    paths |= {f"skills.{number}.path": skill.get("path") for number, skill in enumerate(extras.skills)}
    found = [f"{name}: {IN_FILE_ONLY}" for name, path in paths.items() if path is not None]
    if binding.policy.history_scope == "workspace":
        found.append(f"history_scope: {OTHERS_WORDS}")
    return found


def _invalid(binding: AgentBinding, problem: str, for_operators: str = "") -> HostError:
    text = f"agent {binding.agent_id!r} is set up wrongly: {problem}"
    more = f"{text} ({for_operators})" if for_operators else ""
    return HostError(ErrorCode.INVALID_ARGUMENT, text, details={"run_code": CONFIG_INVALID}, for_operators=more)
