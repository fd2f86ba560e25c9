"""The grant of a run: frozen when it is dispatched, or late, when its runner must first say what it asks for."""

from collections.abc import Mapping
from math import inf
from typing import Any

import structlog

from paddock.host.agents.agents import AgentBinding, Agents
from paddock.host.runs.authority import Authority
from paddock.host.runs.live_run import LiveRun, ResultHandling
from paddock.host.runs.live_runs import LiveRuns
from paddock.host.session.loop import SessionLoop
from paddock.rules.access.permissions import Allowance, Grant, RunScope
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.rows import AuditRow
from paddock.rules.run.context import ResolvedAgent, with_tools
from paddock.rules.run.events import actor_of
from paddock.rules.session.messages import RunFailed, RunGranted

log = structlog.get_logger("paddock.runs")

NOTHING_YET = ResolvedAgent(Allowance("", frozenset(), frozenset(), frozenset()), {}, {}, {}, {})
"""Stands for the agent of a run whose runner is not known yet."""
START_CODES: Mapping[ErrorCode, str] = {ErrorCode.NOT_FOUND: "runner.not_found"}


class Granting:
    def __init__(
        self,
        *,
        authority: Authority,
        agents: Agents,
        live: LiveRuns,
        handling: ResultHandling,
        deadline_seconds: float,
    ) -> None:
        """`deadline_seconds` is how long a run may take whose agent says nothing else."""
        self.authority = authority
        self._agents = agents
        self._live = live
        self._handling = handling
        self._clock = handling.clock
        self._observer = handling.observer
        self._deadline_seconds = deadline_seconds

    def authorise(self, session: SessionLoop, turn_id: str, agent_id: str, at: float) -> Mapping[str, Any]:
        """Freeze what this run may do. What is returned is recorded with its dispatch; it has no grant when the runner
        must be started first to learn what it asks for."""
        owner = session.owner
        binding = self._agents.get(agent_id, owner.workspace_id)
        if binding is None:
            return {}
        part, scope = self.authority.part(binding, owner.workspace_id), _scope_of(session, turn_id, agent_id)
        if part is None:
            part, grant = NOTHING_YET, NOTHING_YET.allowance.for_run(scope, deadline_at=inf)
            told: Mapping[str, Any] = {"runner_id": binding.runner_id}
        else:
            part, grant, told = self._granted(session, scope, binding, part, at)
        self._live.add(LiveRun(session, turn_id, grant, part, self._handling))
        return told

    def _granted(
        self, session: SessionLoop, scope: RunScope, binding: AgentBinding, part: ResolvedAgent, at: float
    ) -> tuple[ResolvedAgent, Grant, Mapping[str, Any]]:
        """Return the agent as it is in this run, its grant, and the data to record."""
        deadline = at + (binding.deadline_seconds or self._deadline_seconds)
        given, _ = session.input_of(scope.run_id)
        if given.event is not None and given.event.tools is not None:
            part = with_tools(part, given.event.tools)
        grant = part.allowance.for_run(scope, deadline_at=deadline)
        self._observer.run_started(grant, at)
        return part, grant, {"runner_id": binding.runner_id, "deadline_at": deadline, "grant": part.granted}

    async def grant_late(self, run: LiveRun) -> bool:
        """Start the runner to learn what it asks for, then put the grant on record; False when the run is over."""
        session, scope = run.session, run.grant.scope
        await self.authority.prepare(scope.agent_id, scope.workspace_id)
        binding = self._agents.get(scope.agent_id, scope.workspace_id)
        part = self.authority.part(binding, scope.workspace_id) if binding else None
        now = self._clock()
        if binding is None or part is None:
            code, message = self.why_not(run.turn_id, scope.agent_id, scope.workspace_id)
            await session.record(RunFailed(run.turn_id, code, message, at=now), rows=(_refused(run, now),))
            return False
        run.part, run.grant, told = self._granted(session, scope, binding, part, now)
        decision = await session.record(RunGranted(run.turn_id, told, now))
        return bool(decision.facts) and not run.over

    def why_not(self, turn_id: str, agent_id: str, workspace: str) -> tuple[str, str]:
        error = self.authority.refusal(agent_id, workspace)
        log_why(turn_id, error)
        if error is None:
            return "runner.not_found", f"agent {agent_id!r} is not configured"
        return start_code(error), error.message


def _scope_of(session: SessionLoop, turn_id: str, agent_id: str) -> RunScope:
    """Where the run happens, for whom, and who and what it is about."""
    given, _ = session.input_of(turn_id)
    owner, event = session.owner, given.event
    if event is None:
        return RunScope(turn_id, owner.workspace_id, owner.user_id, agent_id, session.session_id)
    actor, subject = actor_of(event, owner.user_id, given.source), event.subject or {}
    return RunScope(
        turn_id,
        owner.workspace_id,
        owner.user_id,
        agent_id,
        session.session_id,
        subthread_id=event.subthread_id,
        actor_type=str(actor.get("actor_type") or "user"),
        actor_id=actor.get("actor_id"),
        subject_type=subject.get("subject_type"),
        subject_id=subject.get("subject_id"),
        platform=event.delivery.get("surface") if event.delivery is not None and given.source == "platform" else None,
    )


def _refused(run: LiveRun, at: float) -> AuditRow:
    """A run that never got to its runner was given nothing."""
    scope = run.grant.scope
    return AuditRow(
        time=at,
        workspace_id=scope.workspace_id,
        actor=f"user:{scope.user_id}",
        action="run.start",
        resource=scope.agent_id,
        scope=scope.conversation_id,
        result="unauthorized",
        reason="its runner is not known",
        run_id=scope.run_id,
        session_id=scope.conversation_id,
    )


def start_code(error: HostError) -> str:
    return str(error.details.get("run_code") or START_CODES.get(error.code, "runner.start_failed"))


def log_why(run_id: str, error: HostError | None) -> None:
    """Log the part of a refusal that its user is not told."""
    if error is not None and error.for_operators != error.message:
        log.warning("a run cannot be started", action="run.start", run_id=run_id, reason=error.for_operators)
