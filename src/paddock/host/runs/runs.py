"""Runs at their runners: authorised, started, listened to, stopped, as the session decided; it is told the news."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from math import inf
from typing import Any, Protocol

import msgspec
import structlog

from paddock.host.agents.agents import AgentBinding, Agents
from paddock.host.calls.artifacts import Artifacts
from paddock.host.calls.workspace_resources import Offers
from paddock.host.cluster.outage import Outage
from paddock.host.runs.admission import Admission
from paddock.host.runs.authority import Authority
from paddock.host.runs.live_run import NOBODY, ActionRequests, LiveRun
from paddock.host.session.loop import SessionLoop
from paddock.ports import ConversationRecords, KeptRecords, Placement, RunHandle, RunnerGateway
from paddock.ports.runners import Observer
from paddock.rules.access.host_only import NOTHING_OPENED, ApiAgents
from paddock.rules.access.permissions import Allowance, Grant, RunScope, state_key
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.log.events import KINDS
from paddock.rules.rows.rows import AuditRow, TranscriptRow, View
from paddock.rules.run.context import (
    NO_STATE,
    AgentPart,
    StateShown,
    run_context,
    unseen_tools,
    with_tools,
)
from paddock.rules.run.events import HANDOVER, actor_of
from paddock.rules.session.commands import (
    AwaitAck,
    AwaitCancelAck,
    CancelRun,
    EndRun,
    ForceStop,
    OfferSteering,
    RunCommand,
    SessionTimeouts,
    StartRun,
)
from paddock.rules.session.messages import AckTimedOut, CancelAcknowledged, CancelTimedOut, RunFailed, RunGranted
from paddock.rules.values import replace

log = structlog.get_logger("paddock.runs")

SNAPSHOT_BYTES = 256 * 1024
"""How much state rides along in a run's context; more is read by `state.get`."""
SNAPSHOT_SCOPES = frozenset({"conversation", "actor", "subject", "runner"})
LOOK_BACK = 500
MAX_NAMED = 10
"""Names of a client's tools in one line of the log."""
MAX_HANDOVER_CHARS = 100_000
"""How much of what one agent said another gets as its input; the rest is in the history."""
NO_LIMIT = 1_000_000
LOOK_SECONDS = 0.1
"""How often a host that may have lost its runs looks whether it has."""
NOTHING_YET = AgentPart(Allowance("", frozenset(), frozenset(), frozenset()), {}, {}, {}, {})
"""What a run has whose runner is not known yet."""
START_CODES: Mapping[ErrorCode, str] = {ErrorCode.NOT_FOUND: "runner.not_found"}

_decode = msgspec.json.decode


class _Records(ConversationRecords, KeptRecords, Protocol):
    """The ports of the store that are used here."""


class Around(Protocol):
    """What some runs find around themselves besides their context."""

    def needed(self, run: "LiveRun") -> bool: ...
    async def prepare(self, run: "LiveRun", context: dict[str, Any]) -> Placement:
        """Add to the context what it may say; the rest is returned. Raises HostError."""
        ...

    def over(self, run_id: str) -> None:
        """The run has ended; what was open for it closes."""
        ...


class Runs:
    """All runs of this host that have not ended."""

    def __init__(
        self,
        *,
        gateway: RunnerGateway,
        agents: Callable[[], Agents],
        records: _Records,
        clock: Callable[[], float],
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
        offered: frozenset[str],
        host_version: str,
        deadline_seconds: float,
        artifacts: Artifacts,
        actions: ActionRequests | None = None,
        offers: Offers | None = None,
        admission: Admission | None = None,
        around: Around | None = None,
        observer: Observer | None = None,
        opened: ApiAgents = NOTHING_OPENED,
        timeouts: SessionTimeouts | None = None,
    ) -> None:
        self._timeouts = timeouts or SessionTimeouts()
        self.around = around
        self._observer = observer or NOBODY
        self.authority = Authority(gateway=gateway, agents=agents, offered=offered, offers=offers, opened=opened)
        self._gateway = gateway
        self._agents = agents
        self._records = records
        self._clock = clock
        self._spawn = spawn
        self._version = host_version
        self._deadline_seconds = deadline_seconds
        self._actions = actions
        self._artifacts = artifacts
        self._live: dict[str, LiveRun] = {}
        self.draining = False
        self.admission = admission or Admission(NO_LIMIT)
        self.may_act: Callable[[], bool] | None = None
        """Whether this host still owns what it runs, where others may have taken it over."""
        self.outage: Outage | None = None
        """What a run waits for when the store is away, where it may."""

    def find(self, run_id: str) -> LiveRun | None:
        """The run, while this host may act for it."""
        return self._live.get(run_id) if self._is_sure() else None

    def _is_sure(self) -> bool:
        return self.may_act is None or self.may_act()

    @property
    def live(self) -> list[LiveRun]:
        return list(self._live.values())

    async def prepare(self, agent_id: str | None, workspace: str, *, start: bool = True) -> None:
        """Learn what an agent's runner asks for, before a run of it is authorised. A failure shows when it starts.

        Without `start` nobody waits for a process: a run of a runner that is not known yet gets its grant late.
        """
        await self.authority.prepare(agent_id, workspace, start=start)

    def refusal(self, agent_id: str, workspace: str) -> str | None:
        """Why runs of this agent cannot be started now, as far as is known, for whoever asks for one."""
        error = self.authority.refusal(agent_id, workspace)
        return error.message if error else None

    # --- authorise ---------------------------------------------------------------------------------------------------

    def authorise(self, session: SessionLoop, turn_id: str, agent_id: str, at: float) -> Mapping[str, Any]:
        """Freeze what this run may do. What is returned is recorded with its dispatch; it has no grant when the runner
        must be started first to learn what it asks for."""
        owner = session.owner
        binding = self._agents().get(agent_id, owner.workspace_id)
        if binding is None:
            return {}
        part, scope = self.authority.part(binding, owner.workspace_id), _scope_of(session, turn_id, agent_id)
        if part is None:
            part, grant = NOTHING_YET, NOTHING_YET.allowance.for_run(scope, deadline_at=inf)
            told: Mapping[str, Any] = {"runner_id": binding.runner_id}
        else:
            part, grant, told = self._granted(session, scope, binding, part, at)
        if turn_id not in self._live:
            self.admission.entered(owner.workspace_id)
        run = self._live[turn_id] = LiveRun(
            session, turn_id, grant, part, self._clock, self._artifacts, self._spawn, self._actions
        )
        run.observer = self._observer
        return told

    def _granted(
        self, session: SessionLoop, scope: RunScope, binding: AgentBinding, part: AgentPart, at: float
    ) -> tuple[AgentPart, Grant, Mapping[str, Any]]:
        """What its agent is in this run, its grant, and what goes on record of it."""
        deadline = at + (binding.deadline_seconds or self._deadline_seconds)
        given, _ = session.input_of(scope.run_id)
        if given.event is not None and given.event.tools is not None:
            part = with_tools(part, given.event.tools)
        grant = part.allowance.for_run(scope, deadline_at=deadline)
        self._observer.run_started(grant, at)
        return part, grant, {"runner_id": binding.runner_id, "deadline_at": deadline, "grant": part.granted}

    async def _grant_late(self, run: LiveRun) -> bool:
        """Start the runner to learn what it asks for, then put the grant on record; False when the run is over."""
        session, scope = run.session, run.grant.scope
        await self.authority.prepare(scope.agent_id, scope.workspace_id)
        binding = self._agents().get(scope.agent_id, scope.workspace_id)
        part = self.authority.part(binding, scope.workspace_id) if binding else None
        now = self._clock()
        if binding is None or part is None:
            code, message = self._why_not(run.turn_id, scope.agent_id, scope.workspace_id)
            await session.record(RunFailed(run.turn_id, code, message, at=now), rows=(_refused(run, now),))
            return False
        run.part, run.grant, told = self._granted(session, scope, binding, part, now)
        decision = await session.record(RunGranted(run.turn_id, told, now))
        if not decision.facts or run.over:
            return False
        run.after(run.grant.deadline_at - self._clock(), lambda: self._deadline(run))
        return True

    def _why_not(self, turn_id: str, agent_id: str, workspace: str) -> tuple[str, str]:
        error = self.authority.refusal(agent_id, workspace)
        _log_why(turn_id, error)
        if error is None:
            return "runner.not_found", f"agent {agent_id!r} is not configured"
        return _start_code(error), error.message

    # --- perform -----------------------------------------------------------------------------------------------------

    def perform(self, session: SessionLoop, command: RunCommand) -> None:
        run = self._live.get(command.turn_id)
        if type(command) is EndRun:
            self._observer.run_ended(command.turn_id, command.status, self._clock())
        match command:
            case StartRun():
                self._start(session, run, command)
            case AwaitAck():
                pass  # armed when the frame has been written: starting a process has its own time
            case CancelRun() if run is not None:
                run.stopping = True
                self._spawn(self._cancel(run, command.reason))
            case AwaitCancelAck() if run is not None:
                run.after(
                    self._timeouts.cancel_ack, lambda: session.post(CancelTimedOut(command.turn_id, self._clock()))
                )
            case OfferSteering() if run is not None:
                self._offer_steering(run)
            case ForceStop() if run is not None and run.handle is not None:
                run.forced = True
                self._spawn(run.handle.force_stop())
            case EndRun() if run is not None:
                del self._live[command.turn_id]
                self.admission.left(run.grant.scope.workspace_id)
                self._close_around(run)
                run.end()
                self._let_go(run)
            case _:
                pass

    def steers(self, turn_id: str) -> bool:
        """Whether this run was granted to take input in the middle of it, or may still be."""
        run = self._live.get(turn_id)
        return run is not None and (run.part is NOTHING_YET or "steering.pull" in run.grant.actions)

    def _offer_steering(self, run: LiveRun) -> None:
        """Tell its runner what it may take in."""
        waiting = sum(queued.steers for queued in run.session.state.queue)
        if run.handle is not None and waiting and "steering.pull" in run.grant.actions:
            run.handle.steering_available(waiting)

    def consumed(self, turn_id: str, count: int) -> None:
        run = self._live.get(turn_id)
        if run is not None:
            run.give_back(count)

    def abandon(self, turn_id: str) -> None:
        run = self._live.pop(turn_id, None)
        if run is not None:
            self.admission.left(run.grant.scope.workspace_id)
            self._close_around(run)
            run.end()
            if run.handle is not None:
                self._spawn(run.handle.force_stop())

    def _close_around(self, run: LiveRun) -> None:
        if self.around is not None:
            self.around.over(run.turn_id)

    def _needs_around(self, run: LiveRun) -> bool:
        return self.around is not None and self.around.needed(run)

    def _let_go(self, run: LiveRun) -> None:
        """Forget a run that ended; one that its runner still works on is stopped first."""
        if run.handle is None or run.forced:
            return
        if run.settled:
            run.handle.release()
            run.handle = None  # it knows us, as above
        elif not run.stopping:
            self._spawn(self._cancel(run, "run_over"))

    def _start(self, session: SessionLoop, run: LiveRun | None, command: StartRun) -> None:
        if self.draining:
            self._refuse(session, command.turn_id, "host_shutdown", "the host is shutting down")
        elif run is None:
            why = self._why_not(command.turn_id, command.agent_id, session.owner.workspace_id)
            self._refuse(session, command.turn_id, *why)
        elif run.part is NOTHING_YET:
            run.starting = self._spawn(self._dispatch(run))
        elif not self._at_once(run):
            run.after(run.grant.deadline_at - self._clock(), lambda: self._deadline(run))
            run.starting = self._spawn(self._dispatch(run))

    def _at_once(self, run: LiveRun) -> bool:
        """Start a run whose runner is ready and that needs nothing looked up: the usual case, without a task."""
        if "state.get" in run.grant.actions or self._needs_around(run) or _began_elsewhere(run) or not self._is_sure():
            return False
        context = self._context(run, NO_STATE)
        run.handle = self._gateway.start_at_once(run.grant.runner_id, run.turn_id, context, run, _usual_place(run))
        if run.handle is None:
            return False
        self._arm_both(run)
        return True

    def _refuse(self, session: SessionLoop, turn_id: str, code: str, message: str) -> None:
        session.post(RunFailed(turn_id, code, message, at=self._clock()))

    async def _dispatch(self, run: LiveRun) -> None:
        try:
            if run.part is NOTHING_YET and not await self._grant_late(run):
                return
            look_up = partial(self._look_up, run)
            state = await (self.outage.outlast(look_up) if self.outage is not None else look_up())
            context = self._context(run, state)
            needed = self.around is not None and self.around.needed(run)
            place = await self.around.prepare(run, context) if self.around and needed else _usual_place(run)
            asked = (run.grant.runner_id, run.turn_id, context, run, place)
            if not await self._has_it(run):
                return
            run.handle = self._gateway.start_at_once(*asked) or await self._gateway.start_run(*asked)
        except HostError as error:
            _log_why(run.turn_id, error)
            run.lost(_start_code(error), error.message)
            return
        except Exception:  # a run that cannot be started must end, whatever the reason
            log.exception("a run could not be started", action="run.start", run_id=run.turn_id)
            run.lost("runtime_error", "the host could not start the run; its log has the details")
            return
        finally:
            run.starting = None
        if run.over:
            self._let_go(run)
            return
        self._arm(run)
        self._offer_steering(run)  # what came while it was being started

    async def _has_it(self, run: LiveRun) -> bool:
        """Whether a run is to be started. A host that stood still when it had just been recorded does not know whether
        another one has ended it since; it will, with its next beat."""
        while not self._is_sure() and not run.over:  # noqa: ASYNC110 - a clock tells, and nobody rings
            await asyncio.sleep(LOOK_SECONDS)
        return not run.over

    async def _look_up(self, run: LiveRun) -> StateShown:
        """What the store knows that the run is to be told: the state it may see, and what it takes over."""
        state = await self._state(run) if "state.get" in run.grant.actions else NO_STATE
        if _takes_over(run):
            await self._fill_in(run)
        if _began_elsewhere(run):
            await self._find_place(run)
        return state

    async def _find_place(self, run: LiveRun) -> None:
        """Where the conversation stood when the run began, of what the run can read of it."""
        given, _ = run.session.input_of(run.turn_id)
        session_id, begun = run.session.session_id, given.begun_seq or given.seq
        view = View(run.grant.scope.subthread_id)
        events = await self._records.events(session_id, kinds=KINDS, before=begun + 1, limit=1, view=view)
        items = await self._records.transcript(session_id, before=begun, limit=1, view=view)
        earlier = await self._records.transcript(session_id, before=begun, limit=1, view=replace(view, as_of=begun))
        found = replace(
            given,
            newest_event=events[0].seq if events else given.seq,
            newest_item=items[0].seq if items else 0,
            earlier_history=bool(earlier),
        )
        run.session.fill_input(run.turn_id, found)

    def _context(self, run: LiveRun, state: StateShown) -> dict[str, Any]:
        given, trace_id = run.session.input_of(run.turn_id)
        if unseen := unseen_tools(run.part, given):
            text, named = "tools of a client have the names of others", unseen[:MAX_NAMED]
            log.warning(text, action="run.start", run_id=run.turn_id, tools=named, count=len(unseen))
        return run_context(run.part, run.grant, given, trace_id=trace_id, state=state, host_version=self._version)

    async def _fill_in(self, run: LiveRun) -> None:
        """What the agent before said in its turn, as the input of the one that takes over."""
        given, _ = run.session.input_of(run.turn_id)
        parent = given.event.data.get("parent_run_id") if given.event else None
        items = await self._records.transcript(run.session.session_id, limit=LOOK_BACK)
        said = [item.content for item in reversed(items) if item.run_id == parent and _is_said(item)]
        text = "\n\n".join(said)[-MAX_HANDOVER_CHARS:]
        run.session.fill_input(run.turn_id, replace(given, text=text))

    def _arm(self, run: LiveRun) -> None:
        session, turn_id = run.session, run.turn_id
        run.after(self._timeouts.input_ack, lambda: session.post(AckTimedOut(turn_id, self._clock())))

    def _arm_both(self, run: LiveRun) -> None:
        """The deadline's timer waits for the other to ring: most runs are over before, and each timer costs."""
        left, patience = run.grant.deadline_at - self._clock(), self._timeouts.input_ack
        if left <= patience:
            run.after(left, lambda: self._deadline(run))
            self._arm(run)
        else:
            run.after(patience, lambda: self._ack_is_due(run, left - patience))

    def _ack_is_due(self, run: LiveRun, left: float) -> None:
        run.after(left, lambda: self._deadline(run))
        run.session.post(AckTimedOut(run.turn_id, self._clock()))

    def _deadline(self, run: LiveRun) -> None:
        run.fail("deadline_exceeded", "the run took longer than its deadline allows")

    async def _cancel(self, run: LiveRun, reason: str) -> None:
        """Ask the runner to stop and tell the session; a run that is over and still does not stop is made to."""
        run.stopping = True
        if run.handle is None:
            if run.starting is not None:
                run.starting.cancel()
            run.settled = True
        else:
            run.settled = await _asked(run.handle, reason, self._timeouts.cancel_ack) or run.settled
        if run.settled and not run.over:
            run.session.post(CancelAcknowledged(run.turn_id, self._clock()))
        elif not run.over:
            run.stopping = False  # it refused: whoever ends the run must still see it stopped
        elif run.handle is not None and not run.forced:
            if run.settled:
                run.handle.release()
            else:
                await run.handle.force_stop()

    async def _state(self, run: LiveRun) -> StateShown:
        """The values this run may see, by scope; what does not fit is named and left for it to ask."""
        keys = {scope: key for scope in run.grant.state_scopes if (key := state_key(scope, run.grant)) is not None}
        shown = {scope: key for scope, key in keys.items() if scope in SNAPSHOT_SCOPES}
        kept = await self._records.state_snapshot(list(shown.values()), max_bytes=SNAPSHOT_BYTES)
        snapshot: dict[str, dict[str, Any]] = {}
        left_out: dict[str, list[str]] = {}
        for scope, key in keys.items():
            there = kept.get(key)
            run.state_sizes[scope] = await self._records.state_size(key) if there is None else there.size
            if there is not None:
                snapshot[scope] = {name: _decode(value) for name, value in there.values.items()}
                if there.left_out:
                    left_out[scope] = list(there.left_out)
        return StateShown(snapshot, left_out)


def _usual_place(run: LiveRun) -> Placement:
    """Where a run is put that finds nothing around itself."""
    return Placement(checked_for=run.part.checked_for, workspace=run.grant.scope.workspace_id)


def _takes_over(run: LiveRun) -> bool:
    given, _ = run.session.input_of(run.turn_id)
    return given.event is not None and given.event.event_type == HANDOVER


def _began_elsewhere(run: LiveRun) -> bool:
    """Whether its own input need not be the newest that was said when it began: it waited, or it is no plain message of
    a conversation that goes on in one place."""
    given, _ = run.session.input_of(run.turn_id)
    return given.waited or given.event is not None


def _is_said(item: TranscriptRow) -> bool:
    return item.role == "assistant" and item.item_type == "message"


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


def _start_code(error: HostError) -> str:
    return str(error.details.get("run_code") or START_CODES.get(error.code, "runner.start_failed"))


def _log_why(run_id: str, error: HostError | None) -> None:
    """What its user is not told."""
    if error is not None and error.for_operators != error.message:
        log.warning("a run cannot be started", action="run.start", run_id=run_id, reason=error.for_operators)


async def _asked(handle: RunHandle, reason: str, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return await handle.cancel(reason)
    except TimeoutError:
        return False
