"""Following a session: what was just committed, kept for a moment so that live readers need no database.

A tail is a convenience, never the truth: a reader that fell behind, or came late, reads the log and meets the tail
further on. Frames are encoded once per dialect and shared by all readers of an entry.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence

from paddock.ports import EventLog
from paddock.rules.chain import StoredFact
from paddock.rules.replay import expand

TAIL_BYTES = 256 * 1024
IDLE_TAILS = 64
"""Few, for the reason given in `sessions.py`; a reader that comes late reads the log."""
PAGE = 256
ENTRY_BYTES = 300
"""What an entry costs beside its payload, roughly."""


class Entry:
    """One committed fact, with what doors made of it: frames by dialect, encoded once."""

    __slots__ = ("fact", "frames")

    def __init__(self, fact: StoredFact) -> None:
        self.fact = fact
        self.frames: dict[str, list[bytes]] = {}


class Tail:
    """The newest committed facts of one session, at most 256 KiB of them, and who waits for more."""

    __slots__ = ("_bytes", "_entries", "_start", "end", "followers", "listeners", "waiting")

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

    def extend(self, facts: Sequence[StoredFact]) -> None:
        """Called after the commit, never before."""
        if self._start is None:
            self._start = facts[0].seq
        entries = self._entries
        for fact in facts:
            entries.append(Entry(fact))
            self._bytes += len(fact.payload) + ENTRY_BYTES
        self.end = facts[-1].seq
        while self._bytes > TAIL_BYTES and len(entries) > 1:
            self._bytes -= len(entries.popleft().fact.payload) + ENTRY_BYTES
            self._start = entries[0].fact.seq
        if self.waiting:
            self._ring()
        for listener in tuple(self.listeners):
            listener()

    def clear(self) -> None:
        self._entries.clear()
        self._bytes = 0
        self._start = None if not self.end else self.end + 1

    def covers(self, after: int) -> bool:
        """Whether everything behind this number is here."""
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

    def _ring(self) -> None:
        waiting, self.waiting = self.waiting, {}
        for rung in waiting:
            if not rung.done():
                rung.set_result(True)


def _give_up(rung: asyncio.Future[bool]) -> None:
    if not rung.done():
        rung.set_result(False)


class Tails:
    """All tails of this host. Those nobody follows are forgotten, oldest first."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._tails: OrderedDict[str, Tail] = OrderedDict()

    def publish(self, session_id: str, facts: Sequence[StoredFact]) -> None:
        self._tail(session_id).extend(facts)

    def follow(self, session_id: str, turn_id: str | None, after: int) -> "Follower":
        tail = self._tail(session_id)
        tail.followers += 1
        return Follower(self._log, tail, session_id, turn_id, after)

    def forget(self, session_id: str) -> None:
        """Keep nothing of what was said in a session; whoever follows it reads the log until something new comes."""
        tail = self._tails.get(session_id)
        if tail is not None:
            tail.clear()

    def _tail(self, session_id: str) -> Tail:
        tail = self._tails.get(session_id)
        if tail is None:
            tail = self._tails[session_id] = Tail()
            self._forget_some()
        else:
            self._tails.move_to_end(session_id)
        return tail

    def _forget_some(self) -> None:
        """Let go of the tails unused longest; followed ones are spared and count as used."""
        for _ in range(len(self._tails) - IDLE_TAILS):
            session_id, tail = self._tails.popitem(last=False)
            if tail.followers:
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

    def take(self) -> list[Entry] | None:
        """What came since and is still in memory, without a wait; None when it has to be read from the log."""
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

    async def next(self, seconds: float) -> list[Entry]:
        """What came since; waits for it at most so long, then an empty list."""
        while True:
            if not self._tail.covers(self._after):
                committed = self._tail.end
                entries = await self._read()
                if entries:
                    return entries
                # All that was committed before the read is not for us; what came during it may be.
                self._after = max(self._after, committed)
                if self._tail.end > committed:
                    continue
            elif entries := self.take():
                return entries
            if not await self._tail.wait(seconds):
                return []

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
