"""The one loop that owns a session: takes all that waits, decides, writes it down, then acts on it.

Nothing here is true before it is in the log. Whatever arrives while a commit runs is taken together by the next one,
so a short run costs two commits. It is a loop of callbacks and not a task, because most sessions do something twice
and are done. When the store is away for a moment a live turn waits for it (`outage.py`); when an append fails for good
the loop forgets everything and its owner loads the session anew.
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import structlog

from paddock.host.cluster.outage import Outage
from paddock.host.ids import chance
from paddock.host.people.principals import Principal
from paddock.host.session.arrivals import Accepted, Arrival, MessageSubmitted, NewRun, ResultArrived, RunSubmitted
from paddock.host.session.draft import Draft
from paddock.host.session.invariant_watch import Watch
from paddock.host.session.memory import SessionMemory
from paddock.host.session.needs import Keeper, SessionNeeds
from paddock.host.session.refusals import is_new, told, turn_away, turn_away_unsure, unavailable
from paddock.ports import Batch
from paddock.rules.errors import (
    ErrorCode,
    HostError,
    StaleOwnerError,
    StorageUnavailableError,
)
from paddock.rules.log.chain import SALTS_BYTES, Head, StoredFact, seal
from paddock.rules.rows.projection import settled
from paddock.rules.rows.rows import AuditRow, NotedRow, Row, SessionRow
from paddock.rules.run.context import RunInput
from paddock.rules.session.commands import (
    AskManager,
    AwaitConfirm,
    AwaitManager,
    EndRun,
)
from paddock.rules.session.decision import Decision
from paddock.rules.session.messages import Agents, InputAcknowledged, Message
from paddock.rules.session.state import SessionState, to_bytes
from paddock.rules.values import replace

TAKE_MESSAGES = 256
TAKE_BYTES = 256 * 1024
QUIET_SECONDS = 0.005
"""How long an ack may wait for company before it is written down alone."""
PIECE_SECONDS = 0.002
"""How long a piece of a message may: the end of a short answer is right behind it, and one commit does for both."""
SNAPSHOT_EVERY = 200
MAX_WAITING_ORDERS = 1024

log = structlog.get_logger("paddock.session")


class SessionLoop:
    """One session in memory, working through what arrives for it."""

    def __init__(self, memory: SessionMemory, needs: SessionNeeds, keeper: Keeper) -> None:
        self.session_id = memory.session_id
        self.failed = False
        self.rested = False
        """Whether nothing went on in it when it was given up or had gone on elsewhere, so that no owner was refused."""
        self._told: HostError | None = None
        """What whoever still comes is told once it has failed."""
        self.loaded_at = needs.clock()
        self._memory = memory
        self._claimed = self._asked = memory.head
        self._needs = needs
        self._keeper = keeper
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[Arrival] = deque()
        self._working = False
        self._quiet: asyncio.TimerHandle | None = None
        self._orders = 0
        self._settling: asyncio.Task[None] | None = None
        """Waits for the store, and for what became of the last write."""
        self._unsure: Sequence[Arrival] = ()
        """What that write is about."""
        self._noted: list[NotedRow] = []
        """Rows about runs that end, which the audit handed over to be written with their end."""

    # --- what the rest of the house sees ---------------------------------------------------------------------------

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
        """Where its log ends as far as this owner knows: before the last write it asked for, or after it."""
        return self._memory.head, self._asked

    @property
    def owner(self) -> SessionRow:
        """To whom it belongs; known from the first input on, also before that is on record."""
        return self._memory.projection.session

    @property
    def idle(self) -> bool:
        return self._quiet_so_far and not self._working and not self._waiting

    @property
    def _quiet_so_far(self) -> bool:
        """True when nothing goes on in the session as far as it is on record; then any host may own it."""
        state = self._memory.state
        return state.turn is None and not state.queue and not state.transactions

    @property
    def known_turn_ids(self) -> tuple[str, ...]:
        """Every turn that has not ended, and those of a draft that could not be written."""
        return tuple({**dict.fromkeys(self._memory.state.live_turn_ids), **dict.fromkeys(self._memory.inputs)})

    @property
    def outage(self) -> Outage:
        return self._needs.outage

    def input_of(self, turn_id: str) -> tuple[RunInput, str]:
        """Input and trace id of a run that has not ended."""
        return self._memory.inputs[turn_id]

    def find_input(self, turn_id: str) -> RunInput | None:
        found = self._memory.inputs.get(turn_id)
        return found[0] if found else None

    def post(self, arrival: Arrival) -> None:
        """Hand something to the session. Acks and pieces wait a moment for company; everything else wakes the loop."""
        if self.failed:
            turn_away([arrival], self._told or unavailable())
            return
        self._waiting.append(arrival)
        if self._working:
            return
        if (patience := _patience(arrival)) is not None:
            self._gather(patience)
        elif type(arrival) is RunSubmitted and self._quiet is None:
            self._working = True
            self._take_in()  # nothing comes along with it that a turn of the loop would bring
        else:
            self._wake()

    def _gather(self, patience: float) -> None:
        """Most of what may wait comes with the rest right behind it; only what is still alone then needs a timer."""
        if len(self._waiting) == 1:
            self._loop.call_soon(self._still_quiet)
        elif self._quiet is not None and self._quiet.when() > self._loop.time() + patience:
            self._quiet.cancel()
            self._quiet = self._loop.call_later(patience, self._wake)

    def _still_quiet(self) -> None:
        if self._waiting and not self._working and self._quiet is None:
            patience = min(_patience(arrival) or 0.0 for arrival in self._waiting)
            self._quiet = self._loop.call_later(patience, self._wake)

    async def submit(self, new: NewRun, task_id: str, trace_id: str) -> Accepted:
        """Ask for a run and wait until it is on record, or refused."""
        self._check_room(new=True)
        answer: asyncio.Future[Accepted] = self._loop.create_future()
        self._orders += 1
        try:
            self.post(RunSubmitted(new, task_id, trace_id, answer))
            return await answer
        finally:
            self._orders -= 1

    async def record(
        self, message: Message, *, principal: Principal | None = None, rows: tuple[Row, ...] = ()
    ) -> Decision:
        """Hand over a message and wait until what follows from it is on record."""
        recorded: asyncio.Future[Decision] = self._loop.create_future()
        ask = MessageSubmitted(message, recorded, principal, rows)
        self._check_room(new=is_new(ask))
        self._orders += 1
        try:
            self.post(ask)
            return await recorded
        finally:
            self._orders -= 1

    def _check_room(self, *, new: bool) -> None:
        """Nothing new is taken while the live turn waits for the store; what ends something waits with it."""
        if self._orders >= MAX_WAITING_ORDERS:
            text = "this conversation has too many requests waiting; try again shortly"
            raise HostError(ErrorCode.RATE_LIMITED, text, retryable=True)
        if new and (self._settling is not None or (self._memory.state.turn is not None and self._needs.outage.is_on)):
            raise unavailable()

    def fill_input(self, turn_id: str, given: RunInput) -> None:
        """Complete the input of a run with what was looked up after its dispatch."""
        if turn_id in self._memory.inputs:
            self._memory.inputs[turn_id] = (given, self._memory.inputs[turn_id][1])

    # --- what a draft asks -------------------------------------------------------------------------------------------

    @property
    def watch(self) -> Watch:
        return self._needs.watch

    def agents(self) -> Agents:
        return self._needs.agents.for_session(self.owner.workspace_id)

    def authorise(self, turn_id: str, agent_id: str, at: float) -> Mapping[str, Any]:
        return self._needs.performer.authorise(self, turn_id, agent_id, at)

    def consumed(self, turn_id: str, count: int) -> None:
        self._needs.performer.consumed(turn_id, count)

    def steers(self, turn_id: str) -> bool:
        return self._needs.performer.steers(turn_id)

    def deliveries_wait(self) -> None:
        self._needs.deliveries_wait()

    # --- one take ----------------------------------------------------------------------------------------------------

    def _wake(self) -> None:
        if self._quiet is not None:
            self._quiet.cancel()
            self._quiet = None
        if not self._working and self._waiting and not self.failed:
            self._working = True
            self._loop.call_soon(self._take_in)

    def _take_in(self) -> None:
        arrivals = self._take()
        if self._keeper.holds and not self._memory.state.held:
            self._memory.state = replace(self._memory.state, held=True)
        try:
            draft = Draft(self._memory, self, self._needs.clock())
            draft.decide_all(arrivals)
            self._write(draft, arrivals)
        except Exception as error:  # noqa: BLE001 - a mistake of ours must not leave anybody waiting for ever
            self._not_written(arrivals, error)

    def _take(self) -> list[Arrival]:
        taken: list[Arrival] = []
        waiting, size = self._waiting, 0
        while waiting and len(taken) < TAKE_MESSAGES and size < TAKE_BYTES:
            arrival = waiting.popleft()
            if type(arrival) is ResultArrived:
                size += arrival.size
            taken.append(arrival)
        return taken

    def _write(self, draft: Draft, arrivals: list[Arrival]) -> None:
        if not draft.facts and not draft.rows:
            self._act(draft)
            return
        sealed, after = seal(self._memory.head, draft.facts, chance(SALTS_BYTES * len(draft.facts)))
        if sealed:
            self._asked = after
            self._append(draft, arrivals, self._batch(draft, sealed, after))
        else:
            for row in draft.rows:
                if isinstance(row, AuditRow):
                    self._needs.audit.soon(row)
            self._act(draft)

    def _append(self, draft: Draft, arrivals: list[Arrival], batch: Batch) -> None:
        try:
            appending = self._needs.log.append(batch)
        except StorageUnavailableError as away:
            self._unanswered(draft, arrivals, batch, away)
            return
        written = appending if isinstance(appending, asyncio.Future) else asyncio.ensure_future(appending)
        written.add_done_callback(lambda done: self._written(draft, arrivals, batch, done))

    def _batch(self, draft: Draft, sealed: list[StoredFact], after: Head) -> Batch:
        memory = self._memory
        memory.since_snapshot += len(sealed)
        ended = [command.turn_id for command in draft.commands if type(command) is EndRun]
        for turn_id in ended:
            self._noted += self._needs.audit.hand_over(turn_id)
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
            rests=draft.state.turn is None and not draft.state.queue and not draft.state.transactions,
        )

    def _written(self, draft: Draft, arrivals: list[Arrival], batch: Batch, done: asyncio.Future[None]) -> None:
        error = StorageUnavailableError("the store was closed") if done.cancelled() else done.exception()
        if error is not None or self.failed:
            self._unanswered(draft, arrivals, batch, error or StaleOwnerError("this host was declared gone"))
        else:
            self._recorded(draft, batch)

    def _recorded(self, draft: Draft, batch: Batch) -> None:
        """It is on record: now it is true, others may know, and what was decided is done."""
        self._noted.clear()
        try:
            memory = self._memory
            memory.head, memory.state, memory.exists = batch.after, draft.state, True
            self._needs.words.grew(self.owner, batch.facts)
            self._needs.tails.publish(self.session_id, batch.facts)
            self._act(draft)
        except Exception as mistake:  # noqa: BLE001 - the same
            self._fail([], mistake)

    def _act(self, draft: Draft) -> None:
        for tell in draft.done:  # first: it is on record, whatever becomes of the rest, and somebody waits
            tell()
        for command in draft.commands:
            if isinstance(command, AskManager | AwaitManager | AwaitConfirm):
                self._needs.manager.perform(self, command)
                continue
            self._needs.performer.perform(self, command)
            if type(command) is EndRun:
                self._memory.inputs.pop(command.turn_id, None)
        for tx_id in draft.over:
            self._needs.manager.over(tx_id)
        if self._waiting:
            self._loop.call_soon(self._take_in)
            return
        self._working = False
        if self.idle:
            self._keeper.retired(self)

    # --- when the store is away --------------------------------------------------------------------------------------

    def _unanswered(self, draft: Draft, arrivals: list[Arrival], batch: Batch, cause: BaseException) -> None:
        """A live turn waits and goes on with the same write; whoever wants something new is told to come again."""
        if not isinstance(cause, StorageUnavailableError) or not self._may_wait:
            self._not_written(arrivals, cause)
            return
        turn_away_unsure(arrivals)
        turn_away(filter(is_new, self._waiting), unavailable())
        self._waiting = deque(arrival for arrival in self._waiting if not is_new(arrival))
        self._unsure = arrivals
        self._settling = self._needs.spawn(self._settle(draft, batch))

    @property
    def _may_wait(self) -> bool:
        """True when this very owner has written of a live run: then its epoch is on record."""
        memory = self._memory
        alive = memory.state.turn is not None and memory.head != self._claimed and not self.failed
        return alive and self._needs.outage.may_wait

    async def _settle(self, draft: Draft, batch: Batch) -> None:
        error: Exception | None = StorageUnavailableError("the store was closed")  # what is true when this is cut short
        try:
            await self._needs.outage.settle(batch)
            error = StaleOwnerError("this host was declared gone") if self.failed else None
        except Exception as failure:  # noqa: BLE001 - whatever it is, somebody waits
            error = failure
        finally:
            self._settling = None
            self._settled(draft, batch, error)

    def _settled(self, draft: Draft, batch: Batch, error: Exception | None) -> None:
        arrivals, self._unsure = self._unsure, ()
        if error is None:
            self._recorded(draft, batch)
        else:
            self._not_written(arrivals, error)

    # --- when it cannot go on ----------------------------------------------------------------------------------------

    def _not_written(self, arrivals: Iterable[Arrival], cause: BaseException) -> None:
        for row in self._noted:  # true, whoever ends the run; one that was taken and not answered is there twice
            self._needs.audit.soon(row)
        self._noted.clear()
        if not self.failed:
            self.rested = self._quiet_so_far
        self._fail(arrivals, cause)

    def _fail(self, arrivals: Iterable[Arrival], cause: BaseException) -> None:
        if self._told is not None:  # it was given up while this was being written: one end, one refusal on record
            turn_away(arrivals, self._told)
            return
        expected = isinstance(cause, StaleOwnerError | StorageUnavailableError)
        if not expected:
            log.error("a session stopped", action="session.failed", session_id=self.session_id, exc_info=cause)
        self.failed, self._working, self._told = True, False, told(cause)
        if self._settling is not None:
            self._settling.cancel()
        turn_away([*arrivals, *self._unsure, *self._waiting], self._told)
        self._waiting.clear()
        self._keeper.broken(self, cause)

    def give_up(self, cause: Exception) -> None:
        """Stop here and now; what is being written is refused or read by the next owner."""
        if not self.failed:
            self.rested = self.idle
            self._fail([], cause)


def _patience(arrival: Arrival) -> float | None:
    """How many seconds something may wait for what comes right behind it; None for what wakes the loop."""
    if type(arrival) is InputAcknowledged:
        return QUIET_SECONDS
    return PIECE_SECONDS if type(arrival) is ResultArrived and arrival.result.type == "message.delta" else None
