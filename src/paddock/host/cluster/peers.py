"""Membership of a cluster: sends beats, declares silent hosts gone, and takes over their sessions.

`rules/cluster.py` decides by the store's clock who is gone. A host that was itself declared gone drops its
sessions and registers under a new boot number. Beats run in a task of their own, so a busy host does not look gone.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from math import inf

import structlog

from paddock.host.audit import by_host
from paddock.host.cluster.forwarding import Answering, ClusterLink, Forwarding
from paddock.host.cluster.membership import Membership
from paddock.host.session.sessions import Sessions
from paddock.ports.bus import Subscription
from paddock.ports.hosts import steady_seconds
from paddock.ports.waiting import rung_within
from paddock.rules.cluster import BEAT_SECONDS, LOST, SHUT_DOWN, KnownHost, lapsed, unsettled, was_away, why_gone
from paddock.rules.errors import StorageUnavailableError
from paddock.rules.rows.rows import AuditRow

log = structlog.get_logger("paddock.peers")

AGAIN_SECONDS = 0.5
"""The pause after a failed beat; short, because the lease lasts only a while after the last good one."""
LEAVE_SECONDS = 1.0
"""How long signing off may take."""
TAKE_AT_ONCE = 256
TIDY_SECONDS = 300.0
Note = Callable[[AuditRow], None]


class Chore:
    """Periodic work that one host does for all."""

    def __init__(self, do: Callable[[], Awaitable[object]], *, every: float = 0.0) -> None:
        """`every`: seconds between two times; 0 means after each beat."""
        self._do = do
        self._seconds = every
        self._done_at = -inf

    async def do_if_due(self, now: float) -> None:
        """Do it if it is due; a failure is only logged. Raises StorageUnavailableError."""
        if now - self._done_at < self._seconds:
            return
        self._done_at = now
        try:
            await self._do()
        except StorageUnavailableError:
            raise
        except Exception:
            log.exception("a chore failed", action="chores.do")


@dataclass(frozen=True, slots=True)
class Followers:
    """Callbacks of other parts of the host."""

    bus_lost: Callable[[], None] = lambda: None
    """Called when the bus is lost."""
    beaten: Sequence[Callable[[], None]] = ()
    """Called after each beat."""
    changed: Sequence[Callable[[], Awaitable[None]]] = ()
    """Called when another host has changed something that hosts keep in memory."""
    hosts_changed: Sequence[Callable[[], None]] = ()
    """Called when hosts came or went."""
    chores: Sequence[Chore] = ()


@dataclass(eq=False)
class Peers:
    link: ClusterLink
    members: Membership
    _: KW_ONLY
    sessions: Sessions
    forwarding: Forwarding
    answering: Answering
    note: Note
    clock: Callable[[], float]
    followers: Followers = field(default_factory=Followers)
    _bell: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _has_beaten: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _taking: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _left: bool = field(default=False, init=False)
    _heard: Subscription | None = field(default=None, init=False)
    _steady_since: float | None = field(default=None, init=False)
    """When the last failed or late beat was; None if there was none."""
    _watched_seconds: float = field(default=0.0, init=False)
    _seen_changes: str = field(default="", init=False)
    _changes: str | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._met: Sequence[int] = ()
        self._hosts = self.link.hosts
        self._bus = self.link.bus
        self._live = self.link.live
        self._chores = (Chore(self.link.hosts.tidy, every=TIDY_SECONDS), *self.followers.chores)

    async def start(self) -> None:
        self.members.beat_at = steady_seconds()
        self._live.name = f"paddock.{await self._hosts.name()}"
        await self._bus.open(self.followers.bus_lost)
        await self._join()
        await self._beat()
        await self._follow()

    async def keep_beating(self) -> None:
        """Beat until this host leaves, and do the work that follows a beat."""
        async with asyncio.TaskGroup() as group:
            working = group.create_task(self._work_for_ever())
            await self._beat_for_ever()
            working.cancel()

    async def take_over(self) -> int:
        """Take over the sessions of hosts that are gone, in parts, while other hosts do the same. Returns how many."""
        async with self._taking:
            return await self._take_over()

    async def _beat_for_ever(self) -> None:
        while not self._left:
            beaten = await self._try()
            if beaten:
                self._has_beaten.set()
            await rung_within(self._bell, BEAT_SECONDS if beaten else AGAIN_SECONDS)

    async def _work_for_ever(self) -> None:
        while True:
            await self._has_beaten.wait()
            self._has_beaten.clear()
            try:
                if unsettled(self.members.known):
                    await self.take_over()
                await self._look_after()
            except StorageUnavailableError as error:
                log.warning("the work after a beat waits", action="peers.work", reason=str(error))
            except Exception:
                log.exception("the work after a beat failed", action="peers.work")

    async def leave(self) -> None:
        """Sign off for good; the other hosts take over what is unfinished."""
        self._left = True
        self._bell.set()
        await self._hosts.leave(SHUT_DOWN)
        self._ring()

    async def close(self) -> None:
        """Sign off, so that nobody waits for this host's lease to end, and stop listening."""
        try:
            async with asyncio.timeout(LEAVE_SECONDS):
                await self.leave()
        except (TimeoutError, StorageUnavailableError) as error:
            log.warning(
                "this host could not sign off; its lease has to run out",
                action="peers.close",
                reason=str(error),
            )
        await self.answering.stop()
        await self.forwarding.stop()
        await self._bus.close()

    # --- one beat

    async def _try(self) -> bool:
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
        if was_away(steady_seconds() - self.members.beat_at):
            self._steady_since = steady_seconds()
        if beat.held:
            self.members.beat_at = asked_at
        self.members.known = beat.peers
        self._seen_changes = beat.changes
        self._live.meet([peer.boot for peer in self.members.others])
        watched = beat.store_seconds
        if self._steady_since is not None:
            watched = min(watched, asked_at - self._steady_since)
        self._watched_seconds = watched
        return beat.held

    async def _declare(self) -> None:
        silent = lapsed(self.members.known, self._hosts.boot, watched_seconds=self._watched_seconds)
        if not silent:
            return
        known = {peer.boot: peer for peer in self.members.known}
        for boot in await self._hosts.declare_gone(silent, LOST):
            peer = known[boot]
            log.warning("a host is gone", action="hosts.gone", boot=boot, host=peer.host_id, url=peer.url)
            self.note(self._audit("hosts.gone", str(boot), f"{_name_of(peer)} was silent for the length of its lease"))
        await self._beat()
        self._ring()

    async def _take_over(self) -> int:
        tried, gone = set[str](), unsettled(self.members.known)
        while left := await self._hosts.left_behind(limit=TAKE_AT_ONCE):
            new = [one for one in left if one.session_id not in tried]
            if not new:
                log.warning("sessions could not be taken over yet", action="peers.take_over", sessions=len(left))
                return len(tried)  # they are tried again at the next beat
            await self.sessions.take_over([(one.session_id, *why_gone(one.why)) for one in new])
            tried |= {one.session_id for one in new}
        await self._hosts.settled(gone)
        if tried:
            log.info("sessions of hosts that are gone were taken over", action="peers.take_over", sessions=len(tried))
        return len(tried)

    async def _come_back(self) -> None:
        dropped = self.sessions.drop_all()
        before = self._hosts.boot
        await self._hosts.register()
        await self._join()
        await self._beat()
        log.warning("this host was declared gone and is back", action="hosts.back", boot=self._hosts.boot)
        self.note(self._audit("hosts.back", str(before), f"declared gone; {dropped} session(s) were dropped"))

    async def _look_after(self) -> None:
        for callback in self.followers.beaten:
            callback()
        if (met := [peer.boot for peer in self.members.others]) != self._met:
            self._met = met
            for callback in self.followers.hosts_changed:
                callback()
        await self._follow()
        if self.members.is_housekeeper:
            for chore in self._chores:
                await chore.do_if_due(steady_seconds())

    async def _follow(self) -> None:
        seen = self._seen_changes  # a beat may see more meanwhile; that is for the next call
        if self._changes != seen:
            for callback in self.followers.changed:
                await callback()
            self._changes = seen

    async def _join(self) -> None:
        await self.answering.listen()
        await self.forwarding.listen()
        await self._live.join(self._hosts.boot)
        if self._heard is None:
            self._heard = await self._bus.subscribe(self._live.subject("hosts"), lambda _: self._bell.set())
        self._ring()

    def _ring(self) -> None:
        self._bus.publish(self._live.subject("hosts"), b"")

    def _audit(self, action: str, boot: str, reason: str) -> AuditRow:
        return by_host(action, boot, at=self.clock(), scope="hosts", result="decided", reason=reason)


def _name_of(peer: KnownHost) -> str:
    return f"the host at {peer.url}" if peer.url else f"the host {peer.host_id}"
