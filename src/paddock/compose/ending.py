"""Ends the runs of a host that stops: finished, handed over to other hosts, or failed and on record."""

import asyncio
from collections.abc import Callable

import structlog

from paddock.host.cluster.peers import Peers
from paddock.host.keeping.audit import Audit
from paddock.host.runs.live_run import LiveRun
from paddock.host.runs.outcomes import Outcomes
from paddock.host.runs.runs import Runs
from paddock.host.session.sessions import Sessions
from paddock.ports import Store
from paddock.rules.errors import HostError, StorageUnavailableError
from paddock.rules.session.messages import RunFailed

log = structlog.get_logger("paddock.house")

SHUTDOWN_SECONDS = 5.0
"""Time for running turns to have their end recorded when the host stops."""
NOTE_SECONDS = 1.0
DRAIN_SECONDS = 5.0
"""Time for running turns to finish when the host stops and other hosts go on with the rest."""
DRAIN_LOOK_SECONDS = 0.05


class Ending:
    def __init__(
        self,
        *,
        store: Store,
        runs: Runs,
        sessions: Sessions,
        audit: Audit,
        peers: Peers | None,
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._runs = runs
        self._sessions = sessions
        self._audit = audit
        self._peers = peers
        self._clock = clock

    async def drain(self) -> None:
        """Take nothing new. Where others go on with it, let running turns finish for a while; whoever comes meanwhile
        is told to try there."""
        self._runs.live.admission.close()
        if self._peers is None or not self._peers.others:
            return
        loop = asyncio.get_running_loop()
        end = loop.time() + DRAIN_SECONDS
        while self._runs.live and self._store.healthy() and loop.time() < end:  # noqa: ASYNC110 - many runs, one moment
            await asyncio.sleep(DRAIN_LOOK_SECONDS)

    async def end_runs(self) -> None:
        if not self._runs.live.admission.closed:
            await self.drain()
        if self._peers is not None and self._peers.others:
            await self._hand_over(self._peers)
        else:
            await self._end_all()
        self._sessions.leave()

    @property
    def _patience(self) -> float:
        """Time for the last writes of a host that stops; short when the store is away."""
        return SHUTDOWN_SECONDS if self._store.healthy() else NOTE_SECONDS

    async def _hand_over(self, peers: Peers) -> None:
        """Leave unfinished runs to the other hosts, which end them and go on with what waits."""
        left = len(self._runs.live)
        try:
            async with asyncio.timeout(self._patience):
                await self._audit.flush()
                await peers.leave()
        except (TimeoutError, StorageUnavailableError):
            log.warning("the others will find out by themselves", action="house.close")
        self._sessions.drop_all(leaving=True)
        log.info("the others go on", action="house.close", runs=left)

    async def _end_all(self) -> None:
        self._runs.refuse_new()
        self._sessions.hold()
        ending = [self._end(run) for run in self._runs.live]
        try:
            async with asyncio.timeout(self._patience):
                await asyncio.gather(*ending, return_exceptions=True)
                await self._audit.flush()
        except (TimeoutError, StorageUnavailableError):
            log.warning("not every run could be brought to its end before stopping", action="house.close")

    async def _end(self, run: LiveRun) -> None:
        why = "the host was stopped while this run was in progress"
        try:
            await run.session.record(RunFailed(run.turn_id, "host_shutdown", why, at=self._clock()))
        except HostError as error:
            reason = error.message
            log.warning("a run's end could not be recorded", action="house.close", run_id=run.turn_id, reason=reason)


async def note_the_rest(outcomes: Outcomes, audit: Audit) -> None:
    """Write down what was decided, used and done while runs were being stopped: nobody else knows of it."""
    try:
        async with asyncio.timeout(NOTE_SECONDS):
            await outcomes.written()
            await audit.close()
    except (TimeoutError, StorageUnavailableError) as error:
        log.warning("the last rows of the audit could not be written", action="house.close", reason=str(error))
    await outcomes.close()
