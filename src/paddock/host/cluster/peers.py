"""Being one host among several: shows that it is there, notices who is gone, and goes on with what they left.

`rules/cluster/leases.py` decides from the store's clock who is gone. A host that was declared gone itself drops
everything it held and comes back under another number. Beats wait for nothing else that a host does, however
much there is to take over: a host that is only busy is not taken for gone.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from math import inf

import structlog

from paddock.host.cluster.answering import Answering
from paddock.host.cluster.forwarding import ClusterLink, Forwarding
from paddock.host.cluster.membership import Membership
from paddock.host.session.sessions import Sessions
from paddock.ports.bus import Subscription
from paddock.ports.hosts import steady_seconds
from paddock.rules.cluster.leases import (
    BEAT_SECONDS,
    LOST,
    SHUT_DOWN,
    WHY,
    Peer,
    lapsed,
    unsettled,
    was_away,
)
from paddock.rules.errors import StorageUnavailableError
from paddock.rules.rows.rows import AuditRow

log = structlog.get_logger("paddock.peers")

AGAIN_SECONDS = 0.5
"""After a beat that failed: a host acts for its runs only as long as its last one counts."""
LEAVE_SECONDS = 1.0
"""How long the last word of a host may take."""
TAKE_AT_ONCE = 256
TIDY_SECONDS = 300.0
Note = Callable[[AuditRow], None]


class Chore:
    """Something that one host of all does now and then, after a beat of its own."""

    def __init__(self, do: Callable[[], Awaitable[object]], *, every: float = 0.0) -> None:
        """`every` so many seconds; 0: at each beat."""
        self._do = do
        self._seconds = every
        self._done_at = -inf

    async def do_if_due(self, now: float) -> None:
        """One that fails keeps no other from being done. Raises StorageUnavailableError."""
        if now - self._done_at < self._seconds:
            return
        self._done_at = now
        try:
            await self._do()
        except StorageUnavailableError:
            raise
        except Exception:
            log.exception("a chore failed", action="chores.do")


def nothing() -> None:
    """Follow nothing."""


@dataclass(frozen=True, slots=True)
class Followers:
    """The parts of a host that follow what happens among the hosts."""

    bus_lost: Callable[[], None] = nothing
    """Told when nothing is heard from the others any more."""
    beaten: Sequence[Callable[[], None]] = ()
    """Told that time has passed."""
    changed: Sequence[Callable[[], Awaitable[None]]] = ()
    """Keep in memory what another host may have changed."""
    hosts_changed: Sequence[Callable[[], None]] = ()
    """Told that hosts came or went."""
    chores: Sequence[Chore] = ()
    """Work that one host does for all."""


class Peers:
    def __init__(
        self,
        link: ClusterLink,
        members: Membership,
        *,
        sessions: Sessions,
        forwarding: Forwarding,
        answering: Answering,
        note: Note,
        clock: Callable[[], float],
        followers: Followers | None = None,
    ) -> None:
        self._link = link
        self._hosts = link.hosts
        self._bus = link.bus
        self._live = link.live
        self._members = members
        self._sessions = sessions
        self._forwarding = forwarding
        self._answering = answering
        self._note = note
        self._clock = clock
        self._followers = followers or Followers()
        self._chores = (Chore(link.hosts.tidy, every=TIDY_SECONDS), *self._followers.chores)
        self._bell = asyncio.Event()
        self._has_beaten = asyncio.Event()
        self._taking = asyncio.Lock()
        self._left = False
        self._heard: Subscription | None = None
        self._steady_since: float | None = None
        """Since when no beat of ours has failed or come late; None: none has since the start."""
        self._watched_seconds = 0.0
        self._seen_changes = ""
        self._met: Sequence[int] = ()
        self._changes: str | None = None

    @property
    def others(self) -> Sequence[Peer]:
        return self._members.others

    def held(self) -> bool:
        return self._members.held()

    def bus_is_away(self) -> bool:
        return self._link.bus_is_away()

    async def start(self) -> None:
        """Join the others."""
        self._members.beat_at = steady_seconds()
        self._live.name = f"paddock.{await self._hosts.name()}"
        await self._bus.open(self._followers.bus_lost)
        await self._join()
        await self._beat()
        await self._follow()

    async def keep_beating(self) -> None:
        """Until this host leaves; and after each beat, what there is to do for those who are gone."""
        async with asyncio.TaskGroup() as group:
            working = group.create_task(self._work_for_ever())
            await self._beat_for_ever()
            working.cancel()

    async def keep_answering(self) -> None:
        """Do what other hosts ask, for as long as this one runs."""
        await self._answering.keep_answering()

    async def take_over(self) -> int:
        """Everything that nobody owns, in parts; other hosts take theirs at the same time. How many sessions it was."""
        async with self._taking:
            return await self._take_over()

    async def _beat_for_ever(self) -> None:
        while not self._left:
            beaten = await self._try()
            if beaten:
                self._has_beaten.set()
            try:
                async with asyncio.timeout(BEAT_SECONDS if beaten else AGAIN_SECONDS):
                    await self._bell.wait()
            except TimeoutError:
                pass
            self._bell.clear()

    async def _work_for_ever(self) -> None:
        while True:
            await self._has_beaten.wait()
            self._has_beaten.clear()
            try:
                if unsettled(self._members.known):
                    await self.take_over()
                await self._look_after()
            except StorageUnavailableError as error:
                log.warning("what is done after a beat waits", action="peers.work", reason=str(error))
            except Exception:
                log.exception("what is done after a beat waits", action="peers.work")

    async def leave(self) -> None:
        """Own nothing any more, and do not come back; whoever is left goes on with what is unfinished."""
        self._left = True
        self._bell.set()
        await self._hosts.leave(SHUT_DOWN)
        self._ring()

    async def close(self) -> None:
        """The last thing a host says is that it is not there any more, so that nobody waits for its lease."""
        try:
            async with asyncio.timeout(LEAVE_SECONDS):
                await self.leave()
        except (TimeoutError, StorageUnavailableError) as error:
            log.warning("the others will find out by themselves", action="peers.close", reason=str(error))
        await self._answering.stop()
        await self._forwarding.stop()
        await self._bus.close()

    # --- one beat

    async def _try(self) -> bool:
        """Beat once; return True on success."""
        try:
            if not await self._beat() and not self._left:
                await self._come_back()
            await self._declare()
        except StorageUnavailableError as error:
            self._steady_since = steady_seconds()
            log.warning("a beat failed", action="peers.beat", reason=str(error))
            return False
        except Exception:
            log.exception("a beat failed", action="peers.beat")
            return False
        return True

    async def _beat(self) -> bool:
        asked_at = steady_seconds()
        beat = await self._hosts.beat()
        if was_away(steady_seconds() - self._members.beat_at):
            self._steady_since = steady_seconds()
        if beat.held:
            self._members.beat_at = asked_at
        self._members.known = beat.peers
        self._seen_changes = beat.changes
        self._live.meet([peer.boot for peer in self.others])
        watched = beat.store_seconds
        if self._steady_since is not None:
            watched = min(watched, asked_at - self._steady_since)
        self._watched_seconds = watched
        return beat.held

    async def _declare(self) -> None:
        silent = lapsed(self._members.known, self._hosts.boot, watched_seconds=self._watched_seconds)
        if not silent:
            return
        known = {peer.boot: peer for peer in self._members.known}
        for boot in await self._hosts.declare_gone(silent, LOST):
            peer = known[boot]
            log.warning("a host is gone", action="hosts.gone", boot=boot, host=peer.host_id, url=peer.url)
            self._note(self._audit("hosts.gone", str(boot), f"{_called(peer)} was silent for the length of its lease"))
        await self._beat()
        self._ring()

    async def _take_over(self) -> int:
        tried, gone = set[str](), unsettled(self._members.known)
        while left := await self._hosts.left_behind(limit=TAKE_AT_ONCE):
            new = [one for one in left if one.session_id not in tried]
            if not new:
                log.warning("sessions could not be taken over yet", action="peers.take_over", sessions=len(left))
                return len(tried)  # they are tried again at the next beat
            await self._sessions.take_over([(one.session_id, one.why, WHY.get(one.why, WHY[LOST])) for one in new])
            tried |= {one.session_id for one in new}
        await self._hosts.settled(gone)
        if tried:
            log.info("sessions of hosts that are gone were taken over", action="peers.take_over", sessions=len(tried))
        return len(tried)

    async def _come_back(self) -> None:
        """We were declared gone: others have what was ours."""
        dropped = self._sessions.drop_all()
        before = self._hosts.boot
        await self._hosts.register()
        await self._join()
        await self._beat()
        log.warning("this host was taken for gone and is back", action="hosts.back", boot=self._hosts.boot)
        self._note(self._audit("hosts.back", str(before), f"declared gone; {dropped} session(s) were dropped"))

    async def _look_after(self) -> None:
        for tell in self._followers.beaten:
            tell()
        if (met := [peer.boot for peer in self.others]) != self._met:
            self._met = met
            for tell in self._followers.hosts_changed:
                tell()
        await self._follow()
        if self._members.is_housekeeper:
            for chore in self._chores:
                await chore.do_if_due(steady_seconds())

    async def _follow(self) -> None:
        """Take in what was changed for all hosts."""
        seen = self._seen_changes  # a beat may see more meanwhile, which is for the next time
        if self._changes != seen:
            for follow in self._followers.changed:
                await follow()
            self._changes = seen

    async def _join(self) -> None:
        await self._answering.listen()
        await self._forwarding.listen()
        await self._live.join(self._hosts.boot)
        if self._heard is None:
            self._heard = await self._bus.subscribe(self._live.subject("hosts"), lambda _: self._bell.set())
        self._ring()

    def _ring(self) -> None:
        self._bus.publish(self._live.subject("hosts"), b"")

    def _audit(self, action: str, boot: str, reason: str) -> AuditRow:
        return AuditRow(
            time=self._clock(),
            workspace_id="",
            actor="host",
            action=action,
            resource=boot,
            scope="hosts",
            result="decided",
            reason=reason,
        )


def _called(peer: Peer) -> str:
    """Name of a host for people."""
    return f"the host at {peer.url}" if peer.url else f"the host {peer.host_id}"
