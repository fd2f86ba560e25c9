"""Runs at their runners: started, listened to and stopped as the session decided. It is told what becomes of them."""

import asyncio
from dataclasses import dataclass, field

import structlog

from paddock.host.runs.authority import NOTHING_YET, Authority, Granting, log_why, start_code
from paddock.host.runs.briefing import Briefing
from paddock.host.runs.live_run import LiveRun, ResultHandling
from paddock.host.runs.live_runs import LiveRuns
from paddock.host.session.loop import SessionLoop
from paddock.ports import RunHandle, RunnerGateway
from paddock.rules.errors import EndCode, HostError
from paddock.rules.session import commands
from paddock.rules.session.messages import AckTimedOut, CancelAcknowledged, CancelTimedOut, RunFailed

log = structlog.get_logger("paddock.runs")

LOOK_SECONDS = 0.1
"""How often a host whose lease may have ended looks whether it still owns a run."""


@dataclass(kw_only=True, eq=False)
class Runs:
    """All runs of this host that have not ended."""

    gateway: RunnerGateway
    granting: Granting
    briefing: Briefing
    live: LiveRuns
    handling: ResultHandling
    timeouts: commands.SessionTimeouts = field(default_factory=commands.SessionTimeouts)
    _draining: bool = field(default=False, init=False)

    @property
    def authority(self) -> Authority:
        return self.granting.authority

    def refuse_new(self) -> None:
        """Start nothing that waits any more, because the host is being stopped."""
        self._draining = True

    # --- perform -----------------------------------------------------------------------------------------------------

    def perform(self, session: SessionLoop, command: commands.RunCommand) -> None:
        run = self.live.by_id.get(command.turn_id)
        if type(command) is commands.EndRun:
            self.handling.observer.run_ended(command.turn_id, command.status, self.handling.clock())
        match command:
            case commands.StartRun():
                self._start(session, run, command)
            case commands.AwaitAck():
                pass  # the timer starts when the frame has been written: starting a process has its own time
            case commands.CancelRun() if run is not None:
                run.stopping = True
                self.handling.spawn(self._cancel(run, command.reason))
            case commands.AwaitCancelAck() if run is not None:
                run.after(
                    self.timeouts.cancel_ack,
                    lambda: session.post(CancelTimedOut(command.turn_id, self.handling.clock())),
                )
            case commands.OfferSteering() if run is not None:
                self._offer_steering(run)
            case commands.ForceStop() if run is not None and run.handle is not None:
                run.forced = True
                self.handling.spawn(run.handle.force_stop())
            case commands.EndRun() if run is not None:
                self.live.remove(command.turn_id)
                run.end()
                self._let_go(run)
            case _:
                pass

    def steers(self, run_id: str) -> bool:
        """Tell whether this run takes input while it works, or may be granted that later."""
        run = self.live.by_id.get(run_id)
        return run is not None and (run.agent is NOTHING_YET or "steering.pull" in run.grant.actions)

    def _offer_steering(self, run: LiveRun) -> None:
        waiting = sum(queued.steers for queued in run.session.state.queue)
        if run.handle is not None and waiting and "steering.pull" in run.grant.actions:
            run.handle.steering_available(waiting)

    def consumed(self, run_id: str, count: int) -> None:
        run = self.live.by_id.get(run_id)
        if run is not None:
            run.give_back(count)

    def abandon(self, run_id: str) -> None:
        run = self.live.remove(run_id)
        if run is not None:
            run.end()
            if run.handle is not None:
                self.handling.spawn(run.handle.force_stop())

    def _let_go(self, run: LiveRun) -> None:
        """Release a run that ended; one that its runner still works on is cancelled first."""
        if run.handle is None or run.forced:
            return
        if run.settled:
            run.handle.release()
            run.handle = None  # breaks the cycle between the two
        elif not run.stopping:
            self.handling.spawn(self._cancel(run, "run_over"))

    def _start(self, session: SessionLoop, run: LiveRun | None, command: commands.StartRun) -> None:
        if self._draining:
            self._refuse(session, command.turn_id, "host_shutdown", "the host is shutting down")
        elif run is None:
            why = self.granting.why_not(command.turn_id, command.agent_id, session.owner.workspace_id)
            self._refuse(session, command.turn_id, *why)
        elif run.agent is NOTHING_YET:
            run.starting = self.handling.spawn(self._dispatch(run))
        elif not self._at_once(run):
            run.after(run.grant.deadline_at - self.handling.clock(), lambda: self._deadline(run))
            run.starting = self.handling.spawn(self._dispatch(run))

    def _at_once(self, run: LiveRun) -> bool:
        """Start a run whose runner is ready and that needs nothing looked up: the usual case, without a task."""
        briefed = self.briefing.at_once(run) if self.live.held() else None
        if briefed is None:
            return False
        context, place = briefed
        run.handle = self.gateway.start_at_once(run.grant.runner_id, run.run_id, context, run, place)
        if run.handle is None:
            return False
        self._arm_both(run)
        return True

    def _refuse(self, session: SessionLoop, run_id: str, code: EndCode, message: str) -> None:
        session.post(RunFailed(run_id, code, message, at=self.handling.clock()))

    async def _dispatch(self, run: LiveRun) -> None:
        try:
            if run.agent is NOTHING_YET and not await self._granted_late(run):
                return
            context, place = await self.briefing.prepared(run)
            asked = (run.grant.runner_id, run.run_id, context, run, place)
            if not await self._has_it(run):
                return
            run.handle = self.gateway.start_at_once(*asked) or await self.gateway.start_run(*asked)
        except HostError as error:
            log_why(run.run_id, error)
            run.lost(start_code(error), error.message)
            return
        except Exception:  # a run that cannot be started must end, whatever the reason
            log.exception("a run could not be started", action="run.start", run_id=run.run_id)
            run.lost("runtime_error", "the host could not start the run; its log has the details")
            return
        finally:
            run.starting = None
        if run.over:
            self._let_go(run)
            return
        self._arm(run)
        self._offer_steering(run)  # for input that came while it was being started

    async def _granted_late(self, run: LiveRun) -> bool:
        if not await self.granting.grant_late(run):
            return False
        run.after(run.grant.deadline_at - self.handling.clock(), lambda: self._deadline(run))
        return True

    async def _has_it(self, run: LiveRun) -> bool:
        """Tell whether this host still owns a run it is about to start.

        After a host stood still, another one may have ended the run. The host learns that with its next beat.
        """
        while not self.live.held() and not run.over:  # noqa: ASYNC110 - it depends on the clock alone
            await asyncio.sleep(LOOK_SECONDS)
        return not run.over

    def _arm(self, run: LiveRun) -> None:
        session, run_id = run.session, run.run_id
        run.after(self.timeouts.input_ack, lambda: session.post(AckTimedOut(run_id, self.handling.clock())))

    def _arm_both(self, run: LiveRun) -> None:
        """Start the deadline's timer only when the first has rung: most runs are over before, and each timer costs."""
        left, patience = run.grant.deadline_at - self.handling.clock(), self.timeouts.input_ack
        if left <= patience:
            run.after(left, lambda: self._deadline(run))
            self._arm(run)
        else:
            run.after(patience, lambda: self._ack_is_due(run, left - patience))

    def _ack_is_due(self, run: LiveRun, left: float) -> None:
        run.after(left, lambda: self._deadline(run))
        run.session.post(AckTimedOut(run.run_id, self.handling.clock()))

    def _deadline(self, run: LiveRun) -> None:
        run.fail("deadline_exceeded", "the run took longer than its deadline allows")

    async def _cancel(self, run: LiveRun, reason: str) -> None:
        """Ask the runner to stop and tell the session. A run that is over and does not stop is stopped by force."""
        run.stopping = True
        if run.handle is None:
            if run.starting is not None:
                run.starting.cancel()
            run.settled = True
        else:
            run.settled = await _asked(run.handle, reason, self.timeouts.cancel_ack) or run.settled
        if run.settled and not run.over:
            run.session.post(CancelAcknowledged(run.run_id, self.handling.clock()))
        elif not run.over:
            run.stopping = False  # it refused: the end of the run must still stop it
        elif run.handle is not None and not run.forced:
            if run.settled:
                run.handle.release()
            else:
                await run.handle.force_stop()


async def _asked(handle: RunHandle, reason: str, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return await handle.cancel(reason)
    except TimeoutError:
        return False
