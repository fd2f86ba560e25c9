"""Following a session: what was just committed, kept for a moment so that live readers need no database.

A tail is a convenience, never the truth: a reader that fell behind, or came late, reads the log and meets the tail
further on. Frames are encoded once per dialect and shared by all readers of an entry.
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
"""Few, for the reason given in `sessions.py`; a reader that comes late reads the log."""
PAGE = 256
ENTRY_BYTES = 300
"""What an entry costs beside its payload, roughly."""


class Entry(msgspec.Struct, gc=False):
    """One committed fact, with what doors made of it: frames by dialect, encoded once."""

    fact: StoredFact
    frames: dict[str, list[bytes]] = {}


class Tail:
    """The newest committed facts of one session, at most 256 KiB of them, and who waits for more."""

    __slots__ = ("_bytes", "_entries", "_start", "end", "followers", "gone", "heard_from", "listeners", "waiting")

    def __init__(self) -> None:
        self._entries: deque[Entry] = deque()
        self._bytes = 0
        self._start: int | None = None
        self.end = 0
        """The last number committed, as far as this tail knows."""
        self.waiting: dict[asyncio.Future[bool], None] = {}
        """Who waits for the next commit."""
        self.listeners: dict[Callable[[], None], None] = {}
        """Who is called at each commit. They see to their own errors."""
        self.followers = 0
        self.gone = False
        """Whether the session was deleted. Whoever follows one that begins anew under its id has another tail."""
        self.heard_from: Subscription | None = None
        """How it hears what other hosts commit, while somebody here follows."""

    def extend(self, facts: Sequence[StoredFact]) -> None:
        """Called after the commit, never before."""
        if self._start is None:
            self._start = facts[0].seq
        elif facts[0].seq != self.end + 1:  # others wrote in between, and we did not hear of it
            self._forget(facts[0].seq - 1)
        entries = self._entries
        for fact in facts:
            entries.append(Entry(fact))
            self._bytes += len(fact.payload) + ENTRY_BYTES
        self.end = facts[-1].seq
        while self._bytes > TAIL_BYTES and len(entries) > 1:
            self._bytes -= len(entries.popleft().fact.payload) + ENTRY_BYTES
            self._start = entries[0].fact.seq
        if self.waiting:
            self.ring()
        for listener in tuple(self.listeners):
            listener()

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
        for listener in tuple(self.listeners):
            listener()
        return False

    def end_for_good(self) -> None:
        """The session was deleted: nothing of it is kept, and nobody waits for more."""
        self.gone = True
        self.clear()
        self.ring()

    def unsure(self) -> None:
        """Others may have written since: whoever follows reads the log first."""
        self._entries.clear()
        self._bytes = self.end = 0
        self._start = None

    def _forget(self, last: int) -> None:
        """Everything up to this number is in the log and not here."""
        self._entries.clear()
        self._bytes, self.end, self._start = 0, last, last + 1

    def covers(self, after: int) -> bool:
        """True when everything behind this number is here."""
        return self._start is not None and after >= self._start - 1

    def after(self, seq: int, turn_id: str | None) -> list[Entry]:
        found: list[Entry] = []
        for entry in reversed(self._entries):
            fact = entry.fact
            if fact.seq <= seq:
                break
            if turn_id is None or fact.turn_id == turn_id:
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
    """All tails of this host. Those nobody follows are forgotten, oldest first."""

    def __init__(
        self, log: EventLog, live: Live | None = None, owned: Callable[[str], bool] = lambda _session_id: False
    ) -> None:
        """`owned`: whether this host works on a session right now, so that nobody else does."""
        self._log = log
        self._live = live
        """There when other hosts may write the same log."""
        if live is not None:
            live.on_followed = self.tell_how_far
        self._tails: OrderedDict[str, Tail] = OrderedDict()
        self._leaving: set[asyncio.Task[None]] = set()
        self.came: Counter[str] = Counter(bus=0, log=0)
        """How readers here got what other hosts committed: by the bus, or out of the log."""
        self._owned = owned

    def publish(self, session_id: str, facts: Sequence[StoredFact]) -> None:
        self._tail(session_id).extend(facts)
        if self._live is not None and self._live.wanted(session_id):
            self._live.send(session_id, facts)

    def tell_how_far(self, session_ids: Collection[str]) -> None:
        """Another host follows these from now on: what was committed before was not said to it."""
        for session_id in session_ids:
            tail = self._tails.get(session_id)
            if tail is not None and tail.end and self._live is not None:  # the last words may just have been said
                self._live.send_end(session_id, tail.end)

    def follow(self, session_id: str, turn_id: str | None, after: int) -> "Follower":
        tail = self._tail(session_id)
        if self._live is None:
            tail.followers += 1
            return Follower(self._log, tail, session_id, turn_id, after)
        tail.followers += 1
        return SharedFollower(self._log, tail, session_id, turn_id, after, live=self._live, tails=self)

    async def listen(self, session_id: str, tail: Tail) -> None:
        """Hear what others commit, unless it is this host that works on the session."""
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
        """This host goes on with a session, perhaps after others did."""
        tail = self._tails.get(session_id)
        if tail is not None and tail.end != head:
            tail.unsure()

    def look_again(self) -> None:
        """Nothing is heard from others any more: whoever follows reads the log."""
        for tail in self._tails.values():
            if tail.heard_from is not None:
                tail.ring()

    def let_go(self, tail: Tail) -> None:
        """Nobody follows any more: there is nothing to hear."""
        heard, tail.heard_from = tail.heard_from, None
        tail.unsure()
        if heard is not None:
            leaving = asyncio.get_running_loop().create_task(heard.stop())
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)

    def gone(self, session_id: str) -> None:
        """A session was deleted: whoever follows it, here or at another host, is told so."""
        tail = self._tails.get(session_id)
        if tail is not None:
            tail.end_for_good()
        if self._live is not None and self._live.wanted(session_id):
            self._live.send_end(session_id, DELETED)

    def forget(self, session_id: str) -> None:
        """Keep nothing of what was said in a session; whoever follows it reads the log until something new comes."""
        tail = self._tails.get(session_id)
        if tail is not None:
            tail.clear()

    def _tail(self, session_id: str) -> Tail:
        tail = self._tails.get(session_id)
        if tail is None or tail.gone:  # the id of one that only its time ended may begin anew
            tail = self._tails[session_id] = Tail()
            self._forget_some()
        else:
            self._tails.move_to_end(session_id)
        return tail

    def _forget_some(self) -> None:
        """Let go of those unused longest. One that is followed, or may be in a moment because something goes on there,
        is spared and counts as used; two are looked at for each that comes, so the others have their turn soon."""
        for _ in range(min(2, len(self._tails) - IDLE_TAILS)):
            session_id, tail = self._tails.popitem(last=False)
            if tail.followers or self._owned(session_id):
                self._tails[session_id] = tail


class Follower:
    """One reader of a session, or of one turn of it: everything after its place, in order, once."""

    __slots__ = ("_after", "_closed", "_listener", "_log", "_session_id", "_tail", "_turn_id")

    def __init__(self, log: EventLog, tail: Tail, session_id: str, turn_id: str | None, after: int) -> None:
        self._log = log
        self._tail = tail
        self._session_id = session_id
        self._turn_id = turn_id
        self._after = after
        self._closed = False
        self._listener: Callable[[], None] | None = None

    def read_now(self) -> list[Entry] | None:
        """New entries that are still in memory, without waiting; None when they must be read from the log."""
        if not self._tail.covers(self._after):
            return None
        entries = self._tail.after(self._after, self._turn_id)
        if entries:
            self._after = entries[-1].fact.seq
        return entries

    def listen(self, listener: Callable[[], None]) -> None:
        """Call it at each commit, until closed or told to be quiet."""
        self._listener = listener
        self._tail.listeners[listener] = None

    def be_quiet(self) -> None:
        if self._listener is not None:
            self._tail.listeners.pop(self._listener, None)
            self._listener = None

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
        while not self._tail.covers(self._after):
            committed = self._tail.end
            if entries := await self._read():
                return entries
            # All that was committed before the read is not for us; what came during it may be.
            self._after = max(self._after, committed)
            if self._tail.end <= committed:
                return []
        if entries := self._tail.after(self._after, self._turn_id):
            self._after = entries[-1].fact.seq
        return entries

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._tail.followers -= 1
            self.be_quiet()

    async def _read(self) -> list[Entry]:
        limit = PAGE
        while True:
            facts = await self._log.read(self._session_id, after=self._after, turn_id=self._turn_id, limit=limit)
            whole = len(facts) < limit
            # What a later page may still have to be put before is held back for that page.
            known = [Entry(fact) for fact in expand(facts, self._after) if whole or fact.seq < facts[-1].position]
            if known or whole:
                break
            limit *= 2
        await asyncio.sleep(0)  # a store may answer without waiting: whoever reads page after page lets others in
        if known:
            self._after = known[-1].fact.seq
        return known


class SharedFollower(Follower):
    """Follower for a log that several hosts write: it hears them, and reads the log when it has heard nothing."""

    __slots__ = ("_live", "_looked_at", "_quiet", "_tails")

    def __init__(
        self, log: EventLog, tail: Tail, session_id: str, turn_id: str | None, after: int, *, live: Live, tails: Tails
    ) -> None:
        super().__init__(log, tail, session_id, turn_id, after)
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
        """A word that was lost is in the log."""
        if now < self._looked_at + self._live.patience(self._quiet):
            return []
        self._looked_at, self._quiet = now, self._quiet + 1
        try:
            return await self._read()
        except StorageUnavailableError:
            return []  # nothing is written either: what goes on waits, and so does who follows it

    async def _read(self) -> list[Entry]:
        entries = await super()._read()
        if self._tail.heard_from is not None:
            self._tails.came["log"] += len(entries)
        return entries

    def close(self) -> None:
        super().close()
        if not self._tail.followers and self._tail.heard_from is not None:
            self._tails.let_go(self._tail)
