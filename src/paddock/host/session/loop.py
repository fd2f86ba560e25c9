"""The one loop that owns a session: takes all that waits, decides, writes it down, then acts on it.

Nothing is true here before it is in the log. What arrives during a commit is taken together by the next one, so a
short run costs two commits. It is a loop of callbacks and not a task, because most sessions do two things and are done.
While the store is away for a moment a live turn waits (`outage.py`). When an append fails for good, the loop drops its
memory and the session is loaded anew.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence

import structlog

from paddock.host.ids import random_bytes
from paddock.host.outage import Outage
from paddock.host.people.principals import Principal
from paddock.host.session.arrivals import (
    Accepted,
    Arrival,
    MessageSubmitted,
    NewRun,
    RunSubmitted,
    error_for,
    is_new,
    next_batch,
    patience_of,
    turn_away,
    turn_away_unsure,
    unavailable,
)
from paddock.host.session.draft import Draft
from paddock.host.session.memory import SessionLoops, SessionMemory
from paddock.host.session.services import SessionServices
from paddock.host.session.take import Take
from paddock.ports import Batch
from paddock.rules.errors import (
    ErrorCode,
    HostError,
    StaleOwnerError,
    StorageUnavailableError,
)
from paddock.rules.log.chain import SALTS_BYTES, Head, StoredFact, seal
from paddock.rules.log.projection import settled
from paddock.rules.rows.rows import AuditRow, NotedRow, Row, SessionRow
from paddock.rules.run.context import RunInput
from paddock.rules.session import commands
from paddock.rules.session.decision import Decision
from paddock.rules.session.messages import Message
from paddock.rules.session.state import SessionState, to_bytes
from paddock.rules.values import replace

SNAPSHOT_EVERY = 200
MAX_WAITING_REQUESTS = 1024

log = structlog.get_logger("paddock.session")


class SessionLoop:
    """One session in memory, and its work on what arrives for it."""

    def __init__(
        self,
        memory: SessionMemory,
        services: SessionServices,
        loops: SessionLoops,
        broken: "Callable[[SessionLoop, BaseException], None]",
    ) -> None:
        """`broken` is called when this loop cannot go on."""
        self.session_id = memory.session_id
        self.failed = False
        self.rested = False
        """Whether it was idle when it failed, so that this owner lost nothing."""
        self._refusal: HostError | None = None
        """The error for requests that come after it has failed."""
        self.loaded_at = services.clock()
        self._memory = memory
        self._claimed = self._asked = memory.head
        self._services = services
        self._loops = loops
        self._broken = broken
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[Arrival] = deque()
        self._working = False
        self._quiet: asyncio.TimerHandle | None = None
        self._requests = 0
        self._settling: asyncio.Task[None] | None = None
        """Waits until the store says whether the last write was taken."""
        self._unsure: Sequence[Arrival] = ()
        """The arrivals that this write answers."""
        self._noted: list[NotedRow] = []
        """Rows of the audit about runs that end, to be written with their end."""

    # --- state --------------------------------------------------------------------------------------------------------

    @property
    def state(self) -> SessionState:
        return self._memory.state

    @property
    def exists(self) -> bool:
        """True when anything of the session is on record."""
        return self._memory.exists

    @property
    def head(self) -> int:
        """The number of the last fact on record."""
        return self._memory.head.seq

    @property
    def ends(self) -> tuple[Head, Head]:
        """The possible ends of its log: before the last write this owner asked for, and after it."""
        return self._memory.head, self._asked

    @property
    def owner(self) -> SessionRow:
        """The row that names its owner; known from the first input on, also before that is on record."""
        return self._memory.projection.session

    @property
    def at_rest(self) -> bool:
        """True when all that arrived is on record and acted on."""
        return not self._working and not self._waiting

    @property
    def idle(self) -> bool:
        return self._memory.state.rests and not self._working and not self._waiting

    @property
    def waits_for_store(self) -> bool:
        """True while the outcome of the last write is not known."""
        return self._settling is not None

    @property
    def known_turn_ids(self) -> tuple[str, ...]:
        """All turns that have not ended, and those of a draft that could not be written."""
        return tuple({**dict.fromkeys(self._memory.state.live_turn_ids), **dict.fromkeys(self._memory.inputs)})

    @property
    def outage(self) -> Outage:
        return self._services.outage

    def input_of(self, run_id: str) -> tuple[RunInput, str]:
        """Input and trace id of a run that has not ended."""
        return self._memory.inputs[run_id]

    def find_input(self, run_id: str) -> RunInput | None:
        found = self._memory.inputs.get(run_id)
        return found[0] if found else None

    def post(self, arrival: Arrival) -> None:
        """Hand something to the session. Acks and pieces wait a moment for more; everything else wakes the loop."""
        if self.failed:
            turn_away([arrival], self._refusal or unavailable())
            return
        self._waiting.append(arrival)
        if self._working:
            return
        if (patience := patience_of(arrival)) is not None:
            self._gather(patience)
        elif type(arrival) is RunSubmitted and self._quiet is None:
            self._working = True
            self._take_in()  # a turn of the event loop would bring nothing more to go with it
        else:
            self._wake()

    def _gather(self, patience: float) -> None:
        """Wait for more. Usually it is right behind; only an arrival that is still alone then needs a timer."""
        if len(self._waiting) == 1:
            self._loop.call_soon(self._still_quiet)
        elif self._quiet is not None and self._quiet.when() > self._loop.time() + patience:
            self._quiet.cancel()
            self._quiet = self._loop.call_later(patience, self._wake)

    def _still_quiet(self) -> None:
        if self._waiting and not self._working and self._quiet is None:
            patience = min(patience_of(arrival) or 0.0 for arrival in self._waiting)
            self._quiet = self._loop.call_later(patience, self._wake)

    async def submit(self, new: NewRun, run_id: str, trace_id: str) -> Accepted:
        """Ask for a run and wait until it is on record, or refused."""
        self._check_room(new=True)
        answer: asyncio.Future[Accepted] = self._loop.create_future()
        self._requests += 1
        try:
            self.post(RunSubmitted(new, run_id, trace_id, answer))
            return await answer
        finally:
            self._requests -= 1

    async def record(
        self, message: Message, *, principal: Principal | None = None, rows: tuple[Row, ...] = ()
    ) -> Decision:
        """Hand over a message and wait until what follows from it is on record."""
        recorded: asyncio.Future[Decision] = self._loop.create_future()
        submitted = MessageSubmitted(message, recorded, principal, rows)
        self._check_room(new=is_new(submitted))
        self._requests += 1
        try:
            self.post(submitted)
            return await recorded
        finally:
            self._requests -= 1

    def _check_room(self, *, new: bool) -> None:
        """Refuse new requests while the live turn waits for the store; those that end something wait with it."""
        if self._requests >= MAX_WAITING_REQUESTS:
            text = "this conversation has too many requests waiting; try again shortly"
            raise HostError(ErrorCode.RATE_LIMITED, text, retryable=True)
        store_is_away = self._memory.state.turn is not None and self._services.outage.is_on
        if new and (self._settling is not None or store_is_away):
            raise unavailable()

    def fill_input(self, run_id: str, given: RunInput) -> None:
        """Complete the input of a run with what was looked up after its dispatch."""
        if run_id in self._memory.inputs:
            self._memory.inputs[run_id] = (given, self._memory.inputs[run_id][1])

    # --- one take ----------------------------------------------------------------------------------------------------

    def _wake(self) -> None:
        if self._quiet is not None:
            self._quiet.cancel()
            self._quiet = None
        if not self._working and self._waiting and not self.failed:
            self._working = True
            self._loop.call_soon(self._take_in)

    def _take_in(self) -> None:
        arrivals = next_batch(self._waiting)
        if self._loops.holds and not self._memory.state.held:
            self._memory.state = replace(self._memory.state, held=True)
        try:
            draft = Draft(self, self._memory, self._services, self._services.clock())
            Take(draft, self._memory, self._services).decide_all(arrivals)
            self._write(draft, arrivals)
        except Exception as error:  # noqa: BLE001 - a mistake of ours must not leave a caller waiting for ever
            self._not_written(arrivals, error)

    def _write(self, draft: Draft, arrivals: list[Arrival]) -> None:
        if not draft.facts and not draft.rows:
            self._act(draft)
            return
        sealed, after = seal(self._memory.head, draft.facts, random_bytes(SALTS_BYTES * len(draft.facts)))
        if not sealed:
            for row in draft.rows:
                if isinstance(row, AuditRow):
                    self._services.audit.soon(row)
            self._act(draft)
            return
        self._asked = after
        batch = self._batch(draft, sealed, after)
        try:
            appending = self._services.log.append(batch)
        except StorageUnavailableError as away:
            self._unanswered(draft, arrivals, batch, away)
            return
        written = appending if isinstance(appending, asyncio.Future) else asyncio.ensure_future(appending)
        written.add_done_callback(lambda done: self._written(draft, arrivals, batch, done))

    def _batch(self, draft: Draft, sealed: list[StoredFact], after: Head) -> Batch:
        memory = self._memory
        memory.since_snapshot += len(sealed)
        ended = [command.turn_id for command in draft.commands if type(command) is commands.EndRun]
        for run_id in ended:
            self._noted += self._services.audit.hand_over(run_id)
        draft.rows += self._noted
        snapshot = to_bytes(draft.state) if ended or memory.since_snapshot >= SNAPSHOT_EVERY else b""
        if snapshot:
            memory.since_snapshot = 0
        return Batch(
            session_id=self.session_id,
            epoch=memory.epoch,
            before=memory.head,
            after=after,
            facts=sealed,
            rows=settled(draft.rows),
            snapshot=snapshot,
            compacted=draft.compacted,
            rests=draft.state.rests,
        )

    def _written(self, draft: Draft, arrivals: list[Arrival], batch: Batch, done: asyncio.Future[None]) -> None:
        error = StorageUnavailableError("the store was closed") if done.cancelled() else done.exception()
        if error is not None or self.failed:
            self._unanswered(draft, arrivals, batch, error or StaleOwnerError("this host was declared gone"))
        else:
            self._recorded(draft, batch)

    def _recorded(self, draft: Draft, batch: Batch) -> None:
        """Take over the draft that is on record now: tell readers, then perform its commands."""
        self._noted.clear()
        try:
            memory = self._memory
            memory.head, memory.state, memory.exists = batch.after, draft.state, True
            self._services.words.grew(self.owner, batch.facts)
            self._services.tails.publish(self.session_id, batch.facts)
            self._act(draft)
        except Exception as mistake:  # noqa: BLE001 - the same
            self._fail([], mistake)

    def _act(self, draft: Draft) -> None:
        for answer in draft.done:  # first: it is on record, whatever becomes of the rest, and callers wait
            answer()
        for command in draft.commands:
            if isinstance(command, commands.AskManager | commands.AwaitManager | commands.AwaitConfirm):
                self._services.manager.perform(self, command)
                continue
            self._services.performer.perform(self, command)
            if type(command) is commands.EndRun:
                self._memory.inputs.pop(command.turn_id, None)
        for tx_id in draft.over:
            self._services.manager.over(tx_id)
        if self._waiting:
            self._loop.call_soon(self._take_in)
            return
        self._working = False
        if self.idle:
            self._loops.rests(self.session_id)

    # --- when the store is away --------------------------------------------------------------------------------------

    def _unanswered(self, draft: Draft, arrivals: list[Arrival], batch: Batch, cause: BaseException) -> None:
        """Let a live turn wait and go on with the same write; new requests are refused."""
        if not isinstance(cause, StorageUnavailableError) or not self._may_wait:
            self._not_written(arrivals, cause)
            return
        turn_away_unsure(arrivals)
        turn_away(filter(is_new, self._waiting), unavailable())
        self._waiting = deque(arrival for arrival in self._waiting if not is_new(arrival))
        self._unsure = arrivals
        self._settling = self._services.spawn(self._settle(draft, batch))

    @property
    def _may_wait(self) -> bool:
        """True when this owner has written about a live run, so that its epoch is on record."""
        memory = self._memory
        alive = memory.state.turn is not None and memory.head != self._claimed and not self.failed
        return alive and self._services.outage.may_wait

    async def _settle(self, draft: Draft, batch: Batch) -> None:
        error: Exception | None = StorageUnavailableError("the store was closed")  # in case this task is cancelled
        try:
            await self._services.outage.settle(batch)
            error = StaleOwnerError("this host was declared gone") if self.failed else None
        except Exception as failure:  # noqa: BLE001 - callers wait, whatever it is
            error = failure
        finally:
            self._settling = None
            arrivals, self._unsure = self._unsure, ()
            if error is None:
                self._recorded(draft, batch)
            else:
                self._not_written(arrivals, error)

    # --- when it cannot go on ----------------------------------------------------------------------------------------

    def _not_written(self, arrivals: Iterable[Arrival], cause: BaseException) -> None:
        for row in self._noted:  # they hold whatever becomes of the run; one that was written after all is there twice
            self._services.audit.soon(row)
        self._noted.clear()
        if not self.failed:
            self.rested = self._memory.state.rests
        self._fail(arrivals, cause)

    def _fail(self, arrivals: Iterable[Arrival], cause: BaseException) -> None:
        if self._refusal is not None:  # it was given up during this write: one end, one refusal on record
            turn_away(arrivals, self._refusal)
            return
        expected = isinstance(cause, StaleOwnerError | StorageUnavailableError)
        if not expected:
            log.error("a session stopped", action="session.failed", session_id=self.session_id, exc_info=cause)
        self.failed, self._working, self._refusal = True, False, error_for(cause)
        if self._settling is not None:
            self._settling.cancel()
        turn_away([*arrivals, *self._unsure, *self._waiting], self._refusal)
        self._waiting.clear()
        self._broken(self, cause)

    def give_up(self, cause: Exception) -> None:
        """Stop at once. A write under way is refused, or read by the next owner."""
        if not self.failed:
            self.rested = self.idle
            self._fail([], cause)
