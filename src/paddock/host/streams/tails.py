"""Tails of sessions: the newest committed facts, kept for a moment so that live readers need no database.

A tail is a convenience; the log is the truth. A reader that fell behind, or came late, reads the log until it meets the
tail. Frames are encoded once per dialect and shared by all readers of an entry.
"""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Collection, Sequence

import msgspec

from paddock.host.streams.live import DELETED, Live
from paddock.ports import EventLog
from paddock.ports.bus import Subscription
from paddock.rules.errors import StorageUnavailableError
from paddock.rules.log.chain import StoredFact
from paddock.rules.log.replay import expand

TAIL_BYTES = 256 * 1024
IDLE_TAILS = 64
"""Few, for the reason given in `session/memory.py`; a reader that comes late reads the log."""
PAGE = 256
ENTRY_BYTES = 300
"""What an entry costs beside its payload, roughly."""


class Entry(msgspec.Struct, gc=False):
    """One committed fact, with its frames by dialect, encoded once."""

    fact: StoredFact
    frames: dict[str, list[bytes]] = {}


class Tail:
    """The newest committed facts of one session, at most 256 KiB of them, and those who wait for more."""

    __slots__ = ("_bytes", "_entries", "_start", "end", "followers", "gone", "heard_from", "waiting")

    def __init__(self) -> None:
        self._entries: deque[Entry] = deque()
        self._bytes = 0
        self._start: int | None = None
        self.end = 0
        """The last number committed, as far as this tail knows."""
        self.waiting: dict[asyncio.Future[bool], None] = {}
        """Who waits for the next commit."""
        self.followers = 0
        self.gone = False
        """True when the session was deleted. A new one under the same id gets another tail."""
        self.heard_from: Subscription | None = None
        """The subscription to what other hosts commit, while there are followers here."""

    def extend(self, facts: Sequence[StoredFact]) -> None:
        """Called after the commit, never before."""
        if self._start is None:
            self._start = facts[0].seq
        elif facts[0].seq != self.end + 1:  # others wrote in between, unheard
            self._forget(facts[0].seq - 1)
        entries = self._entries
        for fact in facts:
            entries.append(Entry(fact))
            self._bytes += len(fact.payload) + ENTRY_BYTES
        self.end = facts[-1].seq
        while self._bytes > TAIL_BYTES and len(entries) > 1:
            self._bytes -= len(entries.popleft().fact.payload) + ENTRY_BYTES
            self._start = entries[0].fact.seq
        self.ring()

    def clear(self) -> None:
        self._entries.clear()
        self._bytes = 0
        self._start = None if not self.end else self.end + 1

    def hear(self, facts: Sequence[StoredFact], last: int) -> bool:
        """Take in facts that another host has committed; they may come twice, late, or never.

        Returns False when they were of no use; then they are in the log.
        """
        if last == DELETED:
            self.end_for_good()
        if last <= self.end:
            return False
        if facts and (self._start is None or facts[0].seq == self.end + 1):
            self.extend(facts)
            return True
        self._forget(last)
        self.ring()
        return False

    def end_for_good(self) -> None:
        """Keep nothing of a session that was deleted, and wake those who wait."""
        self.gone = True
        self.clear()
        self.ring()

    def unsure(self) -> None:
        """Forget everything: others may have written since, so followers read the log first."""
        self._entries.clear()
        self._bytes = self.end = 0
        self._start = None

    def _forget(self, last: int) -> None:
        """Leave everything up to this number to the log."""
        self._entries.clear()
        self._bytes, self.end, self._start = 0, last, last + 1

    def after(self, seq: int, run_id: str | None) -> list[Entry] | None:
        """The entries behind a number; None when some of them are not in memory."""
        if self._start is None or seq < self._start - 1:
            return None
        found: list[Entry] = []
        for entry in reversed(self._entries):
            fact = entry.fact
            if fact.seq <= seq:
                break
            if run_id is None or fact.turn_id == run_id:
                found.append(entry)
        found.reverse()
        return found

    async def wait(self, seconds: float) -> bool:
        """Wait for the next commit; False when none came in time."""
        loop = asyncio.get_running_loop()
        rung: asyncio.Future[bool] = loop.create_future()
        self.waiting[rung] = None
        late = loop.call_later(seconds, _give_up, rung)
        try:
            return await rung
        finally:
            late.cancel()
            self.waiting.pop(rung, None)

    def ring(self) -> None:
        waiting, self.waiting = self.waiting, {}
        for rung in waiting:
            if not rung.done():
                rung.set_result(True)


def _give_up(rung: asyncio.Future[bool]) -> None:
    if not rung.done():
        rung.set_result(False)


class Tails:
    """All tails of this host. Those without followers are forgotten, oldest first."""

    def __init__(
        self, log: EventLog, live: Live | None = None, owned: Callable[[str], bool] = lambda _session_id: False
    ) -> None:
        """`owned` tells whether this host works on a session now, so that no other host does."""
        self._log = log
        self._live = live
        """Set when other hosts may write the same log."""
        if live is not None:
            live.on_followed = self.tell_how_far
        self._tails: OrderedDict[str, Tail] = OrderedDict()
        self._leaving: set[asyncio.Task[None]] = set()
        self.came: Counter[str] = Counter(bus=0, log=0)
        """Facts of other hosts that readers here got, by the bus and from the log."""
        self._owned = owned

    def __len__(self) -> int:
        return len(self._tails)

    def publish(self, session_id: str, facts: Sequence[StoredFact]) -> None:
        self.tail_of(session_id).extend(facts)
        if self._live is not None and self._live.wanted(session_id):
            self._live.send(session_id, facts)

    def tell_how_far(self, session_ids: Collection[str]) -> None:
        """Tell another host, which follows these sessions from now on, how far they are."""
        for session_id in session_ids:
            tail = self._tails.get(session_id)
            if tail is not None and tail.end and self._live is not None:
                self._live.send_end(session_id, tail.end)

    def follow(self, session_id: str, run_id: str | None, after: int) -> "Follower":
        tail = self.tail_of(session_id)
        if self._live is None:
            tail.followers += 1
            return Follower(self._log, tail, session_id, run_id, after)
        tail.followers += 1
        return SharedFollower(self._log, tail, session_id, run_id, after, live=self._live, tails=self)

    async def listen(self, session_id: str, tail: Tail) -> None:
        """Subscribe to what other hosts commit, unless this host works on the session."""
        if self._live is None or tail.heard_from is not None or self._owned(session_id):
            return

        def hear(facts: Sequence[StoredFact], last: int) -> None:
            if tail.hear(facts, last):
                self.came["bus"] += len(facts)

        heard = await self._live.listen(session_id, hear)
        if tail.heard_from is not None or not tail.followers:
            await heard.stop()
            return
        tail.heard_from = heard
        tail.unsure()

    def claimed(self, session_id: str, head: int) -> None:
        """Check the tail of a session that this host goes on with, perhaps after others did."""
        tail = self._tails.get(session_id)
        if tail is not None and tail.end != head:
            tail.unsure()

    def look_again(self) -> None:
        """Let followers read the log, because nothing is heard from other hosts any more."""
        for tail in self._tails.values():
            if tail.heard_from is not None:
                tail.ring()

    def let_go(self, tail: Tail) -> None:
        heard, tail.heard_from = tail.heard_from, None
        tail.unsure()
        if heard is not None:
            leaving = asyncio.get_running_loop().create_task(heard.stop())
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)

    def gone(self, session_id: str) -> None:
        """Tell the followers of a session, here and at other hosts, that it was deleted."""
        tail = self._tails.get(session_id)
        if tail is not None:
            tail.end_for_good()
        if self._live is not None and self._live.wanted(session_id):
            self._live.send_end(session_id, DELETED)

    def forget(self, session_id: str) -> None:
        """Keep nothing of a session in memory; its followers read the log until something new comes."""
        tail = self._tails.get(session_id)
        if tail is not None:
            tail.clear()

    def tail_of(self, session_id: str) -> Tail:
        tail = self._tails.get(session_id)
        if tail is None or tail.gone:  # a session may begin anew under the id of one that expired
            tail = self._tails[session_id] = Tail()
            # Let go of those unused longest. One that is followed, or may be soon because this host works on the
            # session, is kept and counts as used. Two are looked at for each new one, so the others have their turn.
            for _ in range(min(2, len(self._tails) - IDLE_TAILS)):
                oldest, unused = self._tails.popitem(last=False)
                if unused.followers or self._owned(oldest):
                    self._tails[oldest] = unused
        else:
            self._tails.move_to_end(session_id)
        return tail


class Follower:
    """One reader of a session, or of one run in it: everything after its position, in order, once."""

    __slots__ = ("_after", "_closed", "_log", "_run_id", "_session_id", "_tail")

    def __init__(self, log: EventLog, tail: Tail, session_id: str, run_id: str | None, after: int) -> None:
        self._log = log
        self._tail = tail
        self._session_id = session_id
        self._run_id = run_id
        self._after = after
        self._closed = False

    @property
    def gone(self) -> bool:
        """True when the session is known to be deleted: nothing comes any more."""
        return self._tail.gone

    async def next(self, seconds: float) -> list[Entry]:
        """Wait so long for new entries; an empty list when none came. Returns at once when the session is gone."""
        while True:
            if self._tail.gone:
                return []
            if entries := await self._found():
                return entries
            if not await self._tail.wait(seconds):
                return []

    async def _found(self) -> list[Entry]:
        """Entries that are there already: in the tail, or in the log when that is behind."""
        while (entries := self._tail.after(self._after, self._run_id)) is None:
            committed = self._tail.end
            if read := await self._read():
                return read
            # All that was committed before the read is not for us; what came during it may be.
            self._after = max(self._after, committed)
            if self._tail.end <= committed:
                return []
        if entries:
            self._after = entries[-1].fact.seq
        return entries

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._tail.followers -= 1

    async def _read(self) -> list[Entry]:
        limit = PAGE
        while True:
            facts = await self._log.read(self._session_id, after=self._after, run_id=self._run_id, limit=limit)
            whole = len(facts) < limit
            # What a later page may still have to be put before is held back for that page.
            known = [Entry(fact) for fact in expand(facts, self._after) if whole or fact.seq < facts[-1].position]
            if known or whole:
                break
            limit *= 2
        await asyncio.sleep(0)  # a store may answer without waiting: let others run between two pages
        if known:
            self._after = known[-1].fact.seq
        return known


class SharedFollower(Follower):
    """Follower of a log that several hosts write: it listens to them, and reads the log when it has heard nothing."""

    __slots__ = ("_live", "_looked_at", "_quiet", "_tails")

    def __init__(
        self, log: EventLog, tail: Tail, session_id: str, run_id: str | None, after: int, *, live: Live, tails: Tails
    ) -> None:
        super().__init__(log, tail, session_id, run_id, after)
        self._live = live
        self._tails = tails
        self._quiet = 0
        self._looked_at = asyncio.get_running_loop().time()

    async def next(self, seconds: float) -> list[Entry]:
        time = asyncio.get_running_loop().time
        end = time() + seconds
        while True:
            await self._tails.listen(self._session_id, self._tail)
            if self._tail.gone:
                return []
            if entries := await self._found() or await self._look(time()):
                self._looked_at, self._quiet = time(), 0
                return entries
            now = time()
            if now >= end:
                return []
            await self._tail.wait(min(end, self._looked_at + self._live.patience(self._quiet)) - now)

    async def _look(self, now: float) -> list[Entry]:
        """Read the log now and then: messages between hosts may be lost."""
        if now < self._looked_at + self._live.patience(self._quiet):
            return []
        self._looked_at, self._quiet = now, self._quiet + 1
        try:
            return await self._read()
        except StorageUnavailableError:
            return []  # nothing is written either, so there is nothing to miss

    async def _read(self) -> list[Entry]:
        entries = await super()._read()
        if self._tail.heard_from is not None:
            self._tails.came["log"] += len(entries)
        return entries

    def close(self) -> None:
        super().close()
        if not self._tail.followers and self._tail.heard_from is not None:
            self._tails.let_go(self._tail)
