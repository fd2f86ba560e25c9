"""All sessions this host owns: loaded when they are needed, kept while they work, forgotten when they are idle.

Also ends runs that an earlier owner left unfinished, at start and after the store was away.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Protocol

import structlog

from paddock.host.audit import by_host
from paddock.host.ids import random_bytes
from paddock.host.people.principals import no_such_thread
from paddock.host.session.arrivals import reject, resolve
from paddock.host.session.loop import SessionLoop
from paddock.host.session.memory import STORE_AWAY, SessionLoops, restored, state_of, why_left
from paddock.host.session.services import SessionServices
from paddock.ports import Batch, Claim, ConversationRecords, EventLog, SessionRecords
from paddock.rules.errors import (
    EndCode,
    ErrorCode,
    HostError,
    OwnedElsewhereError,
    StaleOwnerError,
    StorageUnavailableError,
)
from paddock.rules.log.chain import SALTS_BYTES, Head, seal
from paddock.rules.log.forgetting import anchor
from paddock.rules.rows.forgetting import LogTrimmed
from paddock.rules.rows.rows import AuditRow, SessionRow
from paddock.rules.session.chains import transaction_timers
from paddock.rules.session.commands import SessionTimeouts
from paddock.rules.session.messages import LineResumed, RunFailed
from paddock.rules.session.state import SessionState, to_bytes
from paddock.rules.values import Value

log = structlog.get_logger("paddock.sessions")

RETRY_SECONDS = 1.0
RECOVER_AT_ONCE = 64
QUEUE_LOOK_SECONDS = 5.0
TOO_LONG_IN_LINE = "the input waited too long for its turn"
UNANSWERED = "its last write was never answered, and another owner has gone on since"
NO_TURN = ""
"""Stands for no turn: the session is loaded again for its transactions alone."""


class _Records(ConversationRecords, EventLog, SessionRecords, Protocol): ...


class SessionView(Value, frozen=True):
    """A session as seen from outside, without owning it."""

    state: SessionState
    head: int
    exists: bool


@dataclass(eq=False)
class Sessions:
    """The sessions in memory, one loop each, and what they share."""

    store: _Records
    loops: SessionLoops
    services: SessionServices
    _: KW_ONLY
    shared: bool = False
    """Whether other hosts may work on the same sessions. Then an idle one may have gone on there."""
    timeouts: SessionTimeouts = field(default_factory=SessionTimeouts)
    _unanswered: dict[str, SessionLoop] = field(default_factory=dict[str, SessionLoop], init=False)
    """Loops whose last write was never answered, until this host knows who owns the session now."""
    _leaving: bool = field(default=False, init=False)
    """Other hosts, or the next start, go on with everything."""
    _returning: set[tuple[str, str | None]] = field(default_factory=set[tuple[str, str | None]], init=False)
    """Sessions that are being loaded again, each with the turn to be ended."""

    def __post_init__(self) -> None:
        self._opening: dict[str, list[asyncio.Future[SessionLoop]]] = {}
        self.tails = self.services.tails
        self.outage = self.services.outage

    def clock(self) -> float:
        return self.services.clock()

    async def open(self, session_id: str, *, seen_to: bool = False) -> SessionLoop:
        """Return the session's loop: from memory, or claimed and folded from the log now.

        A turn that is live in the log has no host any more, so it is ended, whatever the session is opened for. With
        `seen_to` the caller does that.
        """
        loop = self.loops.use(session_id)
        if loop is not None:
            return loop
        opening = self._opening.get(session_id)
        if opening is None:
            return await self._load(session_id, seen_to=seen_to)
        also: asyncio.Future[SessionLoop] = asyncio.get_running_loop().create_future()
        opening.append(also)
        return await also

    async def view(self, session_id: str) -> SessionView:
        """Return the state of a session wherever it is worked on, without becoming its owner."""
        loop = self.loops.get(session_id)
        if not self.shared:
            loop = loop or await self.open(session_id)
        if loop is not None and not (self.shared and loop.idle):
            return SessionView(loop.state, loop.head, loop.exists)
        claim = await self.store.look(session_id)
        if claim.deleted:
            raise no_such_thread()
        return SessionView(state_of(claim), claim.head.seq, claim.session is not None)

    def leave(self) -> None:
        """Stop waiting for the store and loading sessions again, because the host is being stopped."""
        self._leaving = True
        self.outage.end()

    def hold(self) -> None:
        """Leave queued turns to the next start, because the host is being stopped and no other goes on with them."""
        self.loops.holds = True

    def drop_all(self, *, leaving: bool = False) -> int:
        """Give all loops up, because other hosts take this one for gone. Nothing in memory counts, and no run may go
        on."""
        self._leaving = self._leaving or leaving
        loops = list(self.loops)
        for loop in loops:
            loop.give_up(StaleOwnerError("this host was declared gone"))
        return len(loops)

    async def recover(self, code: EndCode, message: str) -> int:
        """End every unfinished run once. Queued runs go on, and so does every transaction: loading its session asks
        again and starts its timers."""
        seen: dict[str, None] = {run.session_id: None for run in await self.store.unfinished_runs()}
        seen |= dict.fromkeys(await self.store.sessions_with_transactions())
        await self.take_over([(session_id, code, message) for session_id in seen])
        return len(seen)

    async def take_over(self, left: Sequence[tuple[str, EndCode, str]]) -> None:
        """Take over these sessions, each with the code and the sentence its live run ends with."""
        waiting = list(left)
        while waiting:  # together, so that their ends share commits and the host is ready soon
            now, waiting = waiting[:RECOVER_AT_ONCE], waiting[RECOVER_AT_ONCE:]
            await asyncio.gather(*(self._recover_one(*one) for one in now))

    async def let_go(self, session_id: str) -> int | None:
        """Forget a session that is about to be deleted, so that its loop writes nothing any more. Returns the epoch of
        the claim; None when the session is at work. Raises OwnedElsewhereError."""
        loop = await self.open(session_id)
        if not loop.idle:
            return None
        self.loops.forget(session_id)
        loop.failed = True
        claim = await self._own(session_id)  # another host may have worked on it since this loop was loaded
        return claim.epoch if self._rests(claim) else None

    def _rests(self, claim: Claim) -> bool:
        """Tell whether a session that this host just claimed is idle; otherwise go on with it, because no other host
        does."""
        state = state_of(claim)
        if not state.live_turn_ids and not state.transactions:
            return True
        self._see_to(claim.session_id, state.turn.turn_id if state.turn else NO_TURN, *why_left(claim), delay=0.0)
        return False

    async def trim(self, session_id: str, through: Head, at: float, now: float) -> bool:
        """Drop the beginning of an idle session's log, and record where its chain goes on; False when it is in use.

        A host that opens it meanwhile has a newer claim, and then nothing is trimmed.
        """
        loop = self.loops.get(session_id)
        if session_id in self._opening or (loop is not None and not loop.idle):
            return False
        self.loops.forget(session_id)
        try:
            claim = await self._own(session_id)
        except OwnedElsewhereError:
            return False
        if not self._rests(claim) or claim.session is None:
            return False
        state = state_of(claim)
        sealed, after = seal(claim.head, [anchor(through, state, at, now)], random_bytes(SALTS_BYTES))
        row = LogTrimmed(session_id, through.seq, through.digest)
        batch = Batch(session_id, claim.epoch, claim.head, after, sealed, [row], to_bytes(state), rests=True)
        try:
            await self.store.append(batch)
        except StaleOwnerError as stale:
            self.services.audit.soon(_refused(claim.session, str(stale), self.clock()))
            return False
        self.tails.publish(session_id, sealed)
        return True

    def expire_queued(self) -> None:
        """End inputs that have waited too long for their turn. Time in which no host was running does not count."""
        now = self.clock()
        for loop in self.loops:
            for queued in loop.state.queue:
                if max(queued.created_at, loop.loaded_at) + self.timeouts.queue < now:
                    loop.post(RunFailed(queued.turn_id, "deadline_exceeded", TOO_LONG_IN_LINE, at=now))

    async def keep_queues_moving(self) -> None:
        """Expire queued inputs again and again, for as long as the host runs."""
        while True:
            await asyncio.sleep(QUEUE_LOOK_SECONDS)
            self.expire_queued()

    async def _recover_one(self, session_id: str, code: EndCode, message: str) -> None:
        """End the runs of one session. When it cannot be read or written, or its next turn waits for a runner, the
        others do not wait for it."""
        run_id: str | None = None
        try:
            state = (await self.open(session_id, seen_to=True)).state
            run_id = state.turn.turn_id if state.turn else None
            if not state.queue and not state.transactions:
                await self._interrupt(session_id, code, message, run_id)
                return
        except OwnedElsewhereError:
            return  # another host ends it
        except Exception:
            log.exception("a session could not be recovered yet", action="session.recover", session_id=session_id)
        self._see_to(session_id, run_id, code, message, delay=0.0)

    async def _interrupt(self, session_id: str, code: EndCode, message: str, run_id: str | None = None) -> None:
        """End the live turn; with `run_id` only that one."""
        loop = await self.open(session_id)
        turn = loop.state.turn
        if loop.state.left_waiting:
            await loop.record(LineResumed(self.clock()))
        elif turn is None or run_id not in (None, turn.turn_id):
            self.loops.rests(session_id)
        else:
            await loop.record(RunFailed(turn.turn_id, code, message, at=self.clock()))

    async def _load(self, session_id: str, *, seen_to: bool) -> SessionLoop:
        """Load the loop once, however many ask for it meanwhile."""
        waiting = self._opening[session_id] = []
        try:
            claim = await self._own(session_id)
            if claim.deleted:
                raise no_such_thread()
            self.tails.claimed(session_id, claim.head.seq)
            loop = SessionLoop(await restored(self.store, claim), self.services, self.loops, self._broken)
            self.loops.add(loop)
            if not seen_to and (loop.state.turn is not None or loop.state.left_waiting):
                run_id = loop.state.turn.turn_id if loop.state.turn else NO_TURN
                self._see_to(session_id, run_id, *why_left(claim), delay=0.0)
            for command in transaction_timers(loop.state):
                self.services.manager.perform(loop, command)
            self.loops.rests(session_id)  # the caller may not use it after all
        except BaseException as error:
            for also in waiting:
                reject(also, error if isinstance(error, Exception) else StorageUnavailableError("the store was closed"))
            raise
        finally:
            del self._opening[session_id]
        for also in waiting:
            resolve(also, loop)
        return loop

    async def _own(self, session_id: str) -> Claim:
        """Claim the session. When this host's last write was never answered, the claim shows its fate: if the log ends
        elsewhere, or another host owns it, this host was replaced, and the write is recorded as refused."""
        try:
            claim = await self.store.claim(session_id)
        except OwnedElsewhereError:
            self._replaced(self._unanswered.pop(session_id, None))
            raise
        late = self._unanswered.pop(session_id, None)
        if late is not None and claim.head not in late.ends:
            self._replaced(late)
        return claim

    def _replaced(self, late: SessionLoop | None) -> None:
        if late is not None:
            self.services.audit.soon(_refused(late.owner, UNANSWERED, self.clock()))

    def _broken(self, session: SessionLoop, cause: BaseException) -> None:
        """Forget a loop whose append failed, and load the session again when the store is back.

        The append may be on record all the same, and with it turns that nobody began.
        """
        if isinstance(cause, StaleOwnerError) and not self._leaving and not session.rested:
            self.services.audit.soon(_refused(session.owner, str(cause), self.clock()))
        if self.loops.get(session.session_id) is session:
            self.loops.forget(session.session_id)
        known, state = session.known_turn_ids, session.state
        for run_id in known:
            self.services.performer.abandon(run_id)
        if known or state.transactions:
            if isinstance(cause, StorageUnavailableError):
                self._unanswered[session.session_id] = session
            run_id = state.turn.turn_id if state.turn else NO_TURN
            self._see_to(session.session_id, run_id, *STORE_AWAY, delay=RETRY_SECONDS)

    def _see_to(self, session_id: str, run_id: str | None, code: EndCode, message: str, *, delay: float) -> None:
        """Try until the end of this turn is on record; once for each turn."""
        if (session_id, run_id) not in self._returning and not self._leaving:
            self._returning.add((session_id, run_id))
            self.services.spawn(self._bring_back(session_id, run_id, code, message, delay))

    async def _bring_back(self, session_id: str, run_id: str | None, code: EndCode, message: str, delay: float) -> None:
        try:
            while True:
                await asyncio.sleep(delay)
                delay = RETRY_SECONDS
                try:
                    await self._interrupt(session_id, code, message, run_id)
                except OwnedElsewhereError:
                    return  # another host goes on with it, and ends what this one left
                except HostError as error:
                    if error.code is ErrorCode.NOT_FOUND:
                        return  # deleted meanwhile: nothing is left to end
                    continue
                except Exception:  # noqa: BLE001, S112 - the loop said why; a run must not be left without an end
                    continue
                return
        finally:
            self._returning.discard((session_id, run_id))


def _refused(session: SessionRow, why: str, now: float) -> AuditRow:
    return by_host(
        "session.append",
        session.session_id,
        at=now,
        result="stale_owner",
        reason=why[:500],
        workspace_id=session.workspace_id,
        scope=session.session_id,
        session_id=session.session_id,
    )
