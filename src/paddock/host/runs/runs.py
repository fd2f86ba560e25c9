"""Runs at their runners: authorised, started, listened to, stopped, as the session decided; it is told the news."""

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

import structlog

from paddock.host.runs.authority import Authority
from paddock.host.runs.briefing import Briefing
from paddock.host.runs.granting import NOTHING_YET, Granting, log_why, start_code
from paddock.host.runs.live_run import LiveRun, ResultHandling
from paddock.host.runs.live_runs import LiveRuns
from paddock.host.session.loop import SessionLoop
from paddock.ports import Placement, RunHandle, RunnerGateway
from paddock.rules.errors import HostError
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
from paddock.rules.session.messages import AckTimedOut, CancelAcknowledged, CancelTimedOut, RunFailed

log = structlog.get_logger("paddock.runs")

LOOK_SECONDS = 0.1
"""How often a host that may have lost its runs looks whether it has."""


class Around(Protocol):
    """Endpoint, directory and isolation that some runs get besides their context."""

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
        granting: Granting,
        briefing: Briefing,
        live: LiveRuns,
        handling: ResultHandling,
        around: Around | None = None,
        timeouts: SessionTimeouts | None = None,
    ) -> None:
        self._gateway = gateway
        self._granting = granting
        self._briefing = briefing
        self.live = live
        self._live = live.by_id
        self._around = around
        self._timeouts = timeouts or SessionTimeouts()
        self._clock = handling.clock
        self._spawn = handling.spawn
        self._observer = handling.observer
        self._draining = False

    @property
    def authority(self) -> Authority:
        return self._granting.authority

    async def prepare(self, agent_id: str | None, workspace: str, *, start: bool = True) -> None:
        """Learn what an agent's runner asks for, before a run of it is authorised. A failure shows when it starts.

        Without `start` nobody waits for a process: a run of a runner that is not known yet gets its grant late.
        """
        await self.authority.prepare(agent_id, workspace, start=start)

    def refusal(self, agent_id: str, workspace: str) -> str | None:
        """Why runs of this agent cannot be started now, as far as is known, for whoever asks for one."""
        error = self.authority.refusal(agent_id, workspace)
        return error.message if error else None

    def authorise(self, session: SessionLoop, turn_id: str, agent_id: str, at: float) -> Mapping[str, Any]:
        """Freeze what this run may do; what is returned is recorded with its dispatch."""
        return self._granting.authorise(session, turn_id, agent_id, at)

    def refuse_new(self) -> None:
        """The host is being stopped: nothing that waits is started any more."""
        self._draining = True

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
                self.live.remove(command.turn_id)
                self._close_around(run)
                run.end()
                self._let_go(run)
            case _:
                pass

    def steers(self, turn_id: str) -> bool:
        """Tell if this run takes input in the middle of it, or may still be granted to."""
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
        run = self.live.remove(turn_id)
        if run is not None:
            self._close_around(run)
            run.end()
            if run.handle is not None:
                self._spawn(run.handle.force_stop())

    def _close_around(self, run: LiveRun) -> None:
        if self._around is not None:
            self._around.over(run.turn_id)

    def _needs_around(self, run: LiveRun) -> bool:
        return self._around is not None and self._around.needed(run)

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
        if self._draining:
            self._refuse(session, command.turn_id, "host_shutdown", "the host is shutting down")
        elif run is None:
            why = self._granting.why_not(command.turn_id, command.agent_id, session.owner.workspace_id)
            self._refuse(session, command.turn_id, *why)
        elif run.part is NOTHING_YET:
            run.starting = self._spawn(self._dispatch(run))
        elif not self._at_once(run):
            run.after(run.grant.deadline_at - self._clock(), lambda: self._deadline(run))
            run.starting = self._spawn(self._dispatch(run))

    def _at_once(self, run: LiveRun) -> bool:
        """Start a run whose runner is ready and that needs nothing looked up: the usual case, without a task."""
        if self._briefing.needs_lookup(run) or self._needs_around(run) or not self.live.held():
            return False
        context = self._briefing.at_once(run)
        run.handle = self._gateway.start_at_once(run.grant.runner_id, run.turn_id, context, run, _usual_place(run))
        if run.handle is None:
            return False
        self._arm_both(run)
        return True

    def _refuse(self, session: SessionLoop, turn_id: str, code: str, message: str) -> None:
        session.post(RunFailed(turn_id, code, message, at=self._clock()))

    async def _dispatch(self, run: LiveRun) -> None:
        try:
            if run.part is NOTHING_YET and not await self._granted_late(run):
                return
            context = await self._briefing.looked_up(run)
            needed = self._around is not None and self._around.needed(run)
            place = await self._around.prepare(run, context) if self._around and needed else _usual_place(run)
            asked = (run.grant.runner_id, run.turn_id, context, run, place)
            if not await self._has_it(run):
                return
            run.handle = self._gateway.start_at_once(*asked) or await self._gateway.start_run(*asked)
        except HostError as error:
            log_why(run.turn_id, error)
            run.lost(start_code(error), error.message)
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

    async def _granted_late(self, run: LiveRun) -> bool:
        """False when the run is over."""
        if not await self._granting.grant_late(run):
            return False
        run.after(run.grant.deadline_at - self._clock(), lambda: self._deadline(run))
        return True

    async def _has_it(self, run: LiveRun) -> bool:
        """Tell if this host still owns a run it is about to start.

        A host that stood still after recording it does not know if another one has ended it since; it will with its
        next beat.
        """
        while not self.live.held() and not run.over:  # noqa: ASYNC110 - a clock tells, and nobody rings
            await asyncio.sleep(LOOK_SECONDS)
        return not run.over

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


def _usual_place(run: LiveRun) -> Placement:
    """Where a run is put that finds nothing around itself."""
    return Placement(checked_for=run.part.checked_for, workspace=run.grant.scope.workspace_id)


async def _asked(handle: RunHandle, reason: str, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return await handle.cancel(reason)
    except TimeoutError:
        return False
