"""All sessions this host owns: loaded when somebody speaks, kept while they work, forgotten when they idle.

Also brings to an end what an earlier owner left unfinished, at start and after the store was away.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol

import structlog

from paddock.host.cluster.outage import Outage
from paddock.host.ids import chance
from paddock.host.people.principals import no_such_thread
from paddock.host.session.arrivals import reject, resolve
from paddock.host.session.loop import SessionLoop
from paddock.host.session.loops import SessionLoops
from paddock.host.session.needs import SessionNeeds
from paddock.host.session.restore import STORE_AWAY, restored, state_of, why_left
from paddock.host.session.word_quota import Words
from paddock.host.streams.tails import Tails
from paddock.ports import Batch, Claim, ConversationRecords, EventLog, SessionRecords
from paddock.rules.errors import (
    ErrorCode,
    HostError,
    OwnedElsewhereError,
    StaleOwnerError,
    StorageUnavailableError,
)
from paddock.rules.log.chain import SALTS_BYTES, Head, seal
from paddock.rules.log.retention import anchor
from paddock.rules.rows.forgetting import LogTrimmed
from paddock.rules.rows.rows import AuditRow, SessionRow
from paddock.rules.session.commands import SessionTimeouts
from paddock.rules.session.messages import LineResumed, RunFailed
from paddock.rules.session.recovery import transaction_timers
from paddock.rules.session.state import SessionState, to_bytes
from paddock.rules.values import Value

log = structlog.get_logger("paddock.sessions")

RETRY_SECONDS = 1.0
RECOVER_AT_ONCE = 64
QUEUE_LOOK_SECONDS = 5.0
TOO_LONG_IN_LINE = "the input waited too long for its turn"
UNANSWERED = "its last write was never answered, and another owner has gone on since"
NO_TURN = ""
"""No turn is meant, only the session: it is brought back for its transactions."""


class _Records(ConversationRecords, EventLog, SessionRecords, Protocol):
    """The ports of the store that are used here."""


class SessionView(Value, frozen=True):
    """A session as somebody sees it who does not own it."""

    state: SessionState
    head: int
    exists: bool


class Sessions:
    """The sessions in memory, one loop each, and what they share."""

    def __init__(
        self,
        store: _Records,
        loops: SessionLoops,
        needs: SessionNeeds,
        *,
        shared: bool = False,
        timeouts: SessionTimeouts | None = None,
    ) -> None:
        """`shared`: whether other hosts may work on the same sessions, so that what rests here may have gone on
        there."""
        self.timeouts = timeouts or SessionTimeouts()
        self.shared = shared
        self.needs = needs
        self._store = store
        self._loops = loops
        self._opening: dict[str, list[asyncio.Future[SessionLoop]]] = {}
        self._unanswered: dict[str, SessionLoop] = {}
        """Who wrote and never heard whether it was taken, until this host knows who owns the session now."""
        self.holds = False
        """Nothing that waits begins any more."""
        self._leaving = False
        """Others go on with everything from now on."""
        self._returning: set[tuple[str, str | None]] = set()
        """Sessions that are being brought back, each with the turn that somebody sees to the end of."""

    @property
    def outage(self) -> Outage:
        return self.needs.outage

    @property
    def tails(self) -> Tails:
        return self.needs.tails

    @property
    def words(self) -> Words:
        return self.needs.words

    def clock(self) -> float:
        return self.needs.clock()

    async def open(self, session_id: str, *, seen_to: bool = False) -> SessionLoop:
        """The session's loop: in memory, or claimed and folded from the log now.

        A turn that is live in the log is nobody's any more. It is brought to its end, whatever the session is opened
        for, because from now on nobody else does it; `seen_to`: whoever asks does it himself.
        """
        loop = self._loops.use(session_id)
        if loop is not None:
            return loop
        opening = self._opening.get(session_id)
        if opening is None:
            return await self._load(session_id, seen_to=seen_to)
        also: asyncio.Future[SessionLoop] = asyncio.get_running_loop().create_future()
        opening.append(also)
        return await also

    async def view(self, session_id: str) -> SessionView:
        """How a session is now, wherever it is worked on. Nobody becomes its owner by looking."""
        loop = self._loops.get(session_id)
        if not self.shared:
            loop = loop or await self.open(session_id)
        if loop is not None and not (self.shared and loop.idle):
            return SessionView(loop.state, loop.head, loop.exists)
        claim = await self._store.look(session_id)
        if claim.deleted:
            raise no_such_thread()
        return SessionView(state_of(claim), claim.head.seq, claim.session is not None)

    def works_on(self, session_id: str) -> bool:
        """True when something goes on in this session here, and so nowhere else."""
        return self._loops.works_on(session_id)

    def leave(self) -> None:
        """This host is being stopped: nothing waits for the store any more, and nothing is brought back here."""
        self._leaving = True
        self.outage.end()

    def hold(self) -> None:
        """This host is being stopped, and nobody else goes on: what waits in line stays there for the next start."""
        self.holds = True

    def drop_all(self, *, leaving: bool = False) -> int:
        """This host is gone for the others: nothing it remembers may be believed, and nothing it runs may go on."""
        self._leaving = self._leaving or leaving
        loops = list(self._loops)
        for loop in loops:
            loop.give_up(StaleOwnerError("this host was declared gone"))
        return len(loops)

    @property
    def loaded(self) -> int:
        return len(self._loops)

    async def recover(self, code: str, message: str) -> int:
        """Bring every unfinished run to its one visible end; queued ones that never started go on, and so does every
        transaction: loading its session asks again and arms its timers."""
        seen: dict[str, None] = {run.session_id: None for run in await self._store.unfinished_runs()}
        seen |= dict.fromkeys(await self._store.sessions_with_transactions())
        await self.take_over([(session_id, code, message) for session_id in seen])
        return len(seen)

    async def take_over(self, left: Sequence[tuple[str, str, str]]) -> None:
        """Take over these sessions, each with the code and the sentence its live run ends with."""
        waiting = list(left)
        while waiting:  # together, so that their ends share commits; a host that died busy is back soon
            now, waiting = waiting[:RECOVER_AT_ONCE], waiting[RECOVER_AT_ONCE:]
            await asyncio.gather(*(self._recover_one(*one) for one in now))

    async def let_go(self, session_id: str) -> int | None:
        """Let go of a session that is about to be deleted: whoever still holds its loop writes nothing any more. Under
        which epoch that was; None when something goes on in it. Raises OwnedElsewhereError.
        """
        loop = await self.open(session_id)
        if not loop.idle:
            return None
        self._loops.forget(session_id)
        loop.failed = True
        claim = await self._own(session_id)  # it may have gone on elsewhere since it was remembered here
        return claim.epoch if self._rests(claim) else None

    def _rests(self, claim: Claim) -> bool:
        """Tell if a session that is ours now rests; else it is continued, because nobody else does."""
        state = state_of(claim)
        if not state.live_turn_ids and not state.transactions:
            return True
        self._see_to(claim.session_id, state.turn.turn_id if state.turn else NO_TURN, *why_left(claim), delay=0.0)
        return False

    async def trim(self, session_id: str, through: Head, at: float, now: float) -> bool:
        """Drop the beginning of a session that rests, and record from where its chain goes on; False when it is in use.

        Whoever opens it meanwhile has a newer claim, and then nothing is trimmed.
        """
        loop = self._loops.get(session_id)
        if session_id in self._opening or (loop is not None and not loop.idle):
            return False
        self._loops.forget(session_id)
        try:
            claim = await self._own(session_id)
        except OwnedElsewhereError:
            return False
        if not self._rests(claim) or claim.session is None:
            return False
        state = state_of(claim)
        sealed, after = seal(claim.head, [anchor(through, state, at, now)], chance(SALTS_BYTES))
        row = LogTrimmed(session_id, through.seq, through.digest)
        batch = Batch(session_id, claim.epoch, claim.head, after, sealed, [row], to_bytes(state), rests=True)
        try:
            await self._store.append(batch)
        except StaleOwnerError as stale:
            self.needs.audit.soon(_refused(claim.session, str(stale), self.clock()))
            return False
        self.tails.publish(session_id, sealed)
        return True

    def expire_queued(self) -> None:
        """End what has waited too long for its turn: an accepted run does not stay in line for ever. Time in which no
        host was there does not count."""
        now = self.clock()
        for loop in self._loops:
            for queued in loop.state.queue:
                if max(queued.created_at, loop.loaded_at) + self.timeouts.queue < now:
                    loop.post(RunFailed(queued.turn_id, "deadline_exceeded", TOO_LONG_IN_LINE, at=now))

    async def keep_queues_moving(self) -> None:
        """Look for such inputs now and then, for as long as the house stands."""
        while True:
            await asyncio.sleep(QUEUE_LOOK_SECONDS)
            self.expire_queued()

    async def _recover_one(self, session_id: str, code: str, message: str) -> None:
        """One session that cannot be read or written, or whose next turn waits for a runner, keeps no other waiting."""
        turn_id: str | None = None
        try:
            state = (await self.open(session_id, seen_to=True)).state
            turn_id = state.turn.turn_id if state.turn else None
            if not state.queue and not state.transactions:
                await self._interrupt(session_id, code, message, turn_id)
                return
        except OwnedElsewhereError:
            return  # another host sees to it
        except Exception:
            log.exception("a session could not be recovered yet", action="session.recover", session_id=session_id)
        self._see_to(session_id, turn_id, code, message, delay=0.0)

    async def _interrupt(self, session_id: str, code: str, message: str, turn_id: str | None = None) -> None:
        """End the live turn (only that one, when it is named)."""
        loop = await self.open(session_id)
        turn = loop.state.turn
        if loop.state.left_waiting:
            await loop.record(LineResumed(self.clock()))
        elif turn is None or turn_id not in (None, turn.turn_id):
            self.retired(loop)
        else:
            await loop.record(RunFailed(turn.turn_id, code, message, at=self.clock()))

    async def _load(self, session_id: str, *, seen_to: bool) -> SessionLoop:
        """Build the loop once, however many ask for it meanwhile."""
        waiting = self._opening[session_id] = []
        try:
            claim = await self._claim(session_id)
            loop = SessionLoop(await restored(self._store, claim), self.needs, self)
            self._loops.add(loop)
            if not seen_to and (loop.state.turn is not None or loop.state.left_waiting):
                turn_id = loop.state.turn.turn_id if loop.state.turn else NO_TURN
                self._see_to(session_id, turn_id, *why_left(claim), delay=0.0)
            for command in transaction_timers(loop.state):
                self.needs.manager.perform(loop, command)
            self.retired(loop)  # whoever asked may not use it after all
        except BaseException as error:
            for also in waiting:
                reject(also, error if isinstance(error, Exception) else StorageUnavailableError("the store was closed"))
            raise
        finally:
            del self._opening[session_id]
        for also in waiting:
            resolve(also, loop)
        return loop

    async def _claim(self, session_id: str) -> Claim:
        claim = await self._own(session_id)
        if claim.deleted:
            raise no_such_thread()
        self.tails.claimed(session_id, claim.head.seq)
        return claim

    async def _own(self, session_id: str) -> Claim:
        """Become the owner. Here a host learns what became of its last write when nobody answered it: if the log ends
        elsewhere now, or is another's, then it was replaced, and whatever it still had to say is refused."""
        try:
            claim = await self._store.claim(session_id)
        except OwnedElsewhereError:
            self._replaced(self._unanswered.pop(session_id, None))
            raise
        late = self._unanswered.pop(session_id, None)
        if late is not None and claim.head not in late.ends:
            self._replaced(late)
        return claim

    def _replaced(self, late: SessionLoop | None) -> None:
        if late is not None:
            self.needs.audit.soon(_refused(late.owner, UNANSWERED, self.clock()))

    def retired(self, session: SessionLoop) -> None:
        self._loops.rests(session.session_id)

    def broken(self, session: SessionLoop, cause: BaseException) -> None:
        """An append failed: nothing this loop remembers may be believed. Load it anew when the store is back.

        What it wanted to write may be on record all the same, and with it turns that nobody began.
        """
        if isinstance(cause, StaleOwnerError) and not self._leaving and not session.rested:
            self.needs.audit.soon(_refused(session.owner, str(cause), self.clock()))
        if self._loops.get(session.session_id) is session:
            self._loops.forget(session.session_id)
        known, state = session.known_turn_ids, session.state
        for turn_id in known:
            self.needs.performer.abandon(turn_id)
        if known or state.transactions:
            if isinstance(cause, StorageUnavailableError):
                self._unanswered[session.session_id] = session
            turn_id = state.turn.turn_id if state.turn else NO_TURN
            self._see_to(session.session_id, turn_id, *STORE_AWAY, delay=RETRY_SECONDS)

    def _see_to(self, session_id: str, turn_id: str | None, code: str, message: str, *, delay: float) -> None:
        """Try until this turn's end is on record; once for each turn, and never another one's."""
        if (session_id, turn_id) not in self._returning and not self._leaving:
            self._returning.add((session_id, turn_id))
            self.needs.spawn(self._bring_back(session_id, turn_id, code, message, delay))

    async def _bring_back(self, session_id: str, turn_id: str | None, code: str, message: str, delay: float) -> None:
        try:
            while True:
                await asyncio.sleep(delay)
                delay = RETRY_SECONDS
                try:
                    await self._interrupt(session_id, code, message, turn_id)
                except OwnedElsewhereError:
                    return  # another host goes on with it, and ends what ours left
                except HostError as error:
                    if error.code is ErrorCode.NOT_FOUND:
                        return  # it was deleted meanwhile: nothing is left to end
                    continue
                except Exception:  # noqa: BLE001, S112 - the loop said why; a run must not be left without an end
                    continue
                return
        finally:
            self._returning.discard((session_id, turn_id))


def _refused(session: SessionRow, why: str, now: float) -> AuditRow:
    """An owner that was replaced wanted to write, and nothing of it was written."""
    return AuditRow(
        time=now,
        workspace_id=session.workspace_id,
        actor="host",
        action="session.append",
        resource=session.session_id,
        scope=session.session_id,
        result="stale_owner",
        reason=why[:500],
        session_id=session.session_id,
    )
