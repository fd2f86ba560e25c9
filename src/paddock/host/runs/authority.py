"""The authority of runs: what an agent's runs may do, worked out ahead, and the grant of one run.

The authority is kept while nothing it depends on changes: the runner's manifest, the agent's settings and policies, the
resources of the workspace. The grant is frozen when the run is dispatched, or later, when its runner must first be
started to say what it asks for.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, TypeVar, get_args

import msgspec
import structlog

from paddock.host.agents.agents import AgentBinding, Agents
from paddock.host.agents.config import settle_config
from paddock.host.runs.live_run import LiveRun, ResultHandling
from paddock.host.runs.live_runs import LiveRuns
from paddock.host.runs.workspace_resources import WorkspaceResources
from paddock.host.session.loop import SessionLoop
from paddock.ports import RunnerGateway
from paddock.ports.runners import IsolationLevel
from paddock.rules.access.host_only import NOTHING_OPENED, ApiAgents
from paddock.rules.access.permissions import Allowance, Grant, RunScope, allowance, granted_files
from paddock.rules.agents.resources import NOTHING_OFFERED, Offered, not_offered
from paddock.rules.errors import RUN_CODES, ErrorCode, HostError, RunCode
from paddock.rules.rows.rows import AuditRow
from paddock.rules.run.context import ResolvedAgent, resolved_agent, with_tools
from paddock.rules.run.scopes import run_scope
from paddock.rules.session.messages import RunFailed, RunGranted
from paddock.rules.values import Value
from paddock_sdk.protocol.manifest import AgentRunnerManifest

log = structlog.get_logger("paddock.runs")

MAX_KEPT = 4096
"""Resolved agents that are kept; others are worked out again when needed."""
ISOLATION_TOO_LOW: RunCode = "agent.isolation_too_low"

Kept = TypeVar("Kept")


Place = tuple[str, str]
"""A workspace, and the name of an agent or a runner in it."""


class _Known(Value, frozen=True):
    binding: AgentBinding
    manifest: AgentRunnerManifest
    there: Offered
    agent: ResolvedAgent


@dataclass(kw_only=True, eq=False)
class Authority:
    gateway: RunnerGateway
    agents: Agents
    offered: frozenset[str]
    resources: WorkspaceResources | None = None
    opened: ApiAgents = NOTHING_OPENED
    """What agents of the API may name, though it belongs to the operator."""
    _manifests: dict[Place, AgentRunnerManifest] = field(default_factory=dict[Place, AgentRunnerManifest], init=False)
    _resolved: dict[Place, _Known] = field(default_factory=dict[Place, _Known], init=False)
    _refused: dict[Place, HostError] = field(default_factory=dict[Place, HostError], init=False)
    _prepared: dict[Place, object] = field(default_factory=dict[Place, object], init=False)
    """The definitions for which an agent was last prepared; not for agents that ask for resources, which change."""

    async def prepare(self, agent_id: str | None, workspace: str, *, start: bool = True) -> None:
        """Learn what an agent's runner asks for, before a run of it is authorised. A failure shows when the run starts.

        `start`: start a runner that is not known yet to ask it; otherwise it stays unknown.
        """
        agents, place = self.agents, (workspace, agent_id or "")
        in_force = agents.in_force(workspace)
        if self._prepared.get(place) is in_force:
            return
        binding = agents.get(agent_id or "", workspace)
        if binding is None:
            return
        try:
            manifest = self.gateway.known_manifest(binding.runner_id, workspace)
            if manifest is None and not start:
                self._manifests.pop((workspace, binding.runner_id), None)
                return
            manifest = manifest or await self.gateway.manifest(binding.runner_id, workspace)
            _remember(self._manifests, (workspace, manifest.id), manifest)
            if self.resources is not None and _asks_for_resources(manifest):
                await self.resources.refresh(workspace, files="knowledge" in manifest.permissions.files)
            self._settled(binding, manifest, workspace)
            self._refused.pop(place, None)
            if self.resources is None or not _asks_for_resources(manifest):
                _remember(self._prepared, place, in_force)
        except HostError as error:
            if error.code is ErrorCode.NOT_FOUND or error.retryable:
                self._manifests.pop((workspace, binding.runner_id), None)
            _remember(self._refused, place, error)

    def agent(self, binding: AgentBinding, workspace: str) -> ResolvedAgent | None:
        """Return the resolved agent; None when it cannot run."""
        manifest = self._manifests.get((workspace, binding.runner_id))
        if manifest is None:
            return None
        try:
            return self._settled(binding, manifest, workspace)
        except HostError as error:
            _remember(self._refused, (workspace, binding.agent_id), error)
            return None

    def manifest(self, binding: AgentBinding, workspace: str) -> AgentRunnerManifest | None:
        return self._manifests.get((workspace, binding.runner_id))

    def refusal(self, agent_id: str, workspace: str) -> HostError | None:
        """Return why runs of this agent cannot be started now, as far as is known."""
        return self._refused.get((workspace, agent_id))

    def trouble(self, binding: AgentBinding, workspace: str) -> HostError | None:
        """Return the error when the processes of the agent's runner keep failing."""
        return self.gateway.trouble(binding.runner_id, workspace)

    def isolation(self, binding: AgentBinding, workspace: str) -> str:
        """Return the isolation of the agent's next run: a level, or a word for a place outside our control."""
        return self.gateway.isolation_of(binding.runner_id, workspace, binding.isolation)

    def missing(self, binding: AgentBinding, workspace: str) -> list[str]:
        """Return resources that the agent names and the workspace does not have: it runs without them."""
        there = self._there(workspace)
        policy = binding.policy
        return [
            *not_offered("models", policy.models, (model.model_id for model in there.models)),
            *not_offered("tools", policy.tools, (tool.name for tool in there.tools)),
            *not_offered("knowledge_bases", policy.knowledge_bases, (base.kb_id for base in there.bases)),
        ]

    def _there(self, workspace: str) -> Offered:
        return NOTHING_OFFERED if self.resources is None else self.resources.known(workspace)

    def _settled(self, binding: AgentBinding, manifest: AgentRunnerManifest, workspace: str) -> ResolvedAgent:
        """Raises HostError when the agent's settings do not fit its runner."""
        there = self._there(workspace) if _asks_for_resources(manifest) else NOTHING_OFFERED
        known = self._resolved.get((workspace, binding.agent_id))
        if known is not None and known.binding is binding and known.manifest is manifest and known.there is there:
            return known.agent
        agent = self._work_out(binding, manifest, there, workspace)
        _remember(self._resolved, (workspace, binding.agent_id), _Known(binding, manifest, there, agent))
        return agent

    def _work_out(
        self, binding: AgentBinding, manifest: AgentRunnerManifest, there: Offered, workspace: str
    ) -> ResolvedAgent:
        self._check_isolation(binding, workspace)
        allowed = allowance(manifest, binding.policy, self.offered, there)
        config, extras = settle_config(binding, manifest, self.opened)
        agent = resolved_agent(
            allowed,
            config,
            wants_static_refs=manifest.context.wants_static_context_refs,
            there=there,
            files=granted_files(manifest.permissions, binding.policy, there, allowed.knowledge_bases),
            extras=extras,
        )
        return msgspec.structs.replace(agent, checked_for=manifest) if binding.origin == "api" else agent

    def _check_isolation(self, binding: AgentBinding, workspace: str) -> None:
        if binding.isolation is None:
            return
        level = self.gateway.isolation_of(binding.runner_id, workspace, binding.isolation)
        if level not in get_args(IsolationLevel) or level < binding.isolation:
            text = (
                f"agent {binding.agent_id!r} wants isolation {binding.isolation}, and its runner can only have {level}"
            )
            raise HostError(ErrorCode.INVALID_ARGUMENT, text, details={"run_code": ISOLATION_TOO_LOW})


def _remember(known: dict[Place, Kept], key: Place, value: Kept) -> None:
    if len(known) >= MAX_KEPT:
        known.clear()
    known[key] = value


def _asks_for_resources(manifest: AgentRunnerManifest) -> bool:
    asked = manifest.permissions
    return bool(asked.models or asked.tools or asked.knowledge_bases or asked.files)


NOTHING_YET = ResolvedAgent(Allowance("", frozenset(), frozenset(), frozenset()), {}, {}, {}, {})
"""Stands for the agent of a run whose runner is not known yet."""
START_CODES: Mapping[ErrorCode, RunCode] = {ErrorCode.NOT_FOUND: "runner.not_found"}


@dataclass(kw_only=True, eq=False)
class Granting:
    authority: Authority
    agents: Agents
    live: LiveRuns
    handling: ResultHandling
    deadline_seconds: float
    """Of a run whose agent sets none."""

    def authorise(self, session: SessionLoop, run_id: str, agent_id: str, at: float) -> Mapping[str, Any]:
        """Freeze what this run may do, and return what is recorded with its dispatch. There is no grant yet when the
        runner must be started first to learn what it asks for."""
        owner = session.owner
        binding = self.agents.get(agent_id, owner.workspace_id)
        if binding is None:
            return {}
        agent, scope = self.authority.agent(binding, owner.workspace_id), _scope_of(session, run_id, agent_id)
        if agent is None:
            agent, grant = NOTHING_YET, NOTHING_YET.allowance.for_run(scope, deadline_at=inf)
            recorded: Mapping[str, Any] = {"runner_id": binding.runner_id}
        else:
            agent, grant, recorded = self._granted(session, scope, binding, agent, at)
        self.live.add(LiveRun(session, run_id, grant, agent, self.handling))
        return recorded

    def _granted(
        self, session: SessionLoop, scope: RunScope, binding: AgentBinding, agent: ResolvedAgent, at: float
    ) -> tuple[ResolvedAgent, Grant, Mapping[str, Any]]:
        deadline = at + (binding.deadline_seconds or self.deadline_seconds)
        given, _ = session.input_of(scope.run_id)
        if given.event is not None and given.event.tools is not None:
            agent = with_tools(agent, given.event.tools)
        grant = agent.allowance.for_run(scope, deadline_at=deadline)
        self.handling.observer.run_started(grant, at)
        return agent, grant, {"runner_id": binding.runner_id, "deadline_at": deadline, "grant": agent.granted}

    async def grant_late(self, run: LiveRun) -> bool:
        """Start the runner to learn what it asks for, then record the grant; False when the run is over."""
        session, scope = run.session, run.grant.scope
        await self.authority.prepare(scope.agent_id, scope.workspace_id)
        binding = self.agents.get(scope.agent_id, scope.workspace_id)
        agent = self.authority.agent(binding, scope.workspace_id) if binding else None
        now = self.handling.clock()
        if binding is None or agent is None:
            code, message = self.why_not(run.run_id, scope.agent_id, scope.workspace_id)
            await session.record(RunFailed(run.run_id, code, message, at=now), rows=(_refused(run, now),))
            return False
        run.agent, run.grant, recorded = self._granted(session, scope, binding, agent, now)
        decision = await session.record(RunGranted(run.run_id, recorded, now))
        return bool(decision.facts) and not run.over

    def why_not(self, run_id: str, agent_id: str, workspace: str) -> tuple[RunCode, str]:
        error = self.authority.refusal(agent_id, workspace)
        log_why(run_id, error)
        if error is None:
            return "runner.not_found", f"agent {agent_id!r} is not configured"
        return start_code(error), error.message


def _scope_of(session: SessionLoop, run_id: str, agent_id: str) -> RunScope:
    given, _ = session.input_of(run_id)
    owner = session.owner
    return run_scope(
        run_id,
        owner.workspace_id,
        owner.user_id,
        agent_id,
        session.session_id,
        event=given.event,
        source=given.source,
    )


def _refused(run: LiveRun, at: float) -> AuditRow:
    scope = run.grant.scope
    return AuditRow(
        time=at,
        workspace_id=scope.workspace_id,
        actor=f"user:{scope.user_id}",
        action="run.start",
        resource=scope.agent_id,
        scope=scope.session_id,
        result="unauthorized",
        reason="its runner is not known",
        run_id=scope.run_id,
        session_id=scope.session_id,
    )


def start_code(error: HostError) -> RunCode:
    known = error.details.get("run_code")
    return known if known in RUN_CODES else START_CODES.get(error.code, "runner.start_failed")


def log_why(run_id: str, error: HostError | None) -> None:
    """Log the part of a refusal that only operators may see."""
    if error is not None and error.for_operators != error.message:
        log.warning("a run cannot be started", action="run.start", run_id=run_id, reason=error.for_operators)
