"""The one loop that owns a session: takes all that waits, decides, writes it down, then acts on it.

Nothing here is true before it is in the log. Whatever arrives while a commit runs is taken together by the next one,
so a short run costs two commits. When an append fails the loop forgets everything and its owner loads it anew.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import structlog

from paddock.host.audit import Audit
from paddock.host.principals import Principal
from paddock.host.tails import Tails
from paddock.ports import Batch, Claim, EventLog, Records
from paddock.rules.chain import Head, StoredFact, seal
from paddock.rules.errors import ErrorCode, HostError, StaleOwnerError, StorageUnavailableError
from paddock.rules.outputs import KNOWN_TYPES, Collected
from paddock.rules.projection import Book, settled
from paddock.rules.results import Result
from paddock.rules.rows import AuditRow, InboxRow, Row, SessionRow
from paddock.rules.run_context import RunInput, TriggerSource
from paddock.rules.session.commands import Command, EndRun
from paddock.rules.session.decide import Note, decide
from paddock.rules.session.evolve import evolve
from paddock.rules.session.facts import Event, Fact, Target
from paddock.rules.session.messages import (
    Agents,
    CancelAcknowledged,
    CancelTimedOut,
    InputAcknowledged,
    Message,
    OutputReceived,
    RunFailed,
    UserInput,
)
from paddock.rules.session.state import SessionState, to_bytes
from paddock.rules.values import replace

TAKE_MESSAGES = 256
TAKE_BYTES = 256 * 1024
QUIET_SECONDS = 0.005
"""How long an ack may wait for company before it is written down alone."""
SNAPSHOT_EVERY = 200
MAX_WAITING_ORDERS = 1024

_UNAVAILABLE = (ErrorCode.UNAVAILABLE, "the store cannot write now, so nothing was accepted; try again shortly")
_MISTAKE = (ErrorCode.RUNTIME_ERROR, "the host made a mistake and accepted nothing; its log has the details")

log = structlog.get_logger("paddock.session")


@dataclass(frozen=True, slots=True)
class NewRun:
    """What a door asks for: one message of a user, to be answered by an agent. All of `params` is untrusted."""

    principal: Principal
    thread_id: str
    client_run_id: str
    body_hash: bytes
    message: Mapping[str, Any]
    text: str
    params: Mapping[str, Any] = field(default_factory=dict[str, Any])
    agent_id: str | None = None
    source: TriggerSource = "api"
    door: str = "native"


@dataclass(frozen=True, slots=True)
class Accepted:
    """The answer to a new run; the same again for the same request."""

    task_id: str
    thread_id: str
    run_id: str
    created: bool
    first_seq: int


@dataclass(slots=True)
class Order:
    """A new run on its way into the session."""

    new: NewRun
    task_id: str
    trace_id: str
    answer: asyncio.Future[Accepted]


@dataclass(slots=True)
class Ask:
    """A message somebody waits for: the future is done when it is on record."""

    message: Message
    recorded: asyncio.Future[None]


@dataclass(slots=True)
class Said:
    """A result of the live turn, on its way into the session."""

    turn_id: str
    result: Result
    size: int
    scope_key: str | None = None


Arrival = Order | Ask | Said | Message


class Performer(Protocol):
    """Who does what the session decided."""

    async def prepare(self, agent_id: str | None) -> None:
        """Learn what must be known of an agent before a run of it can be authorised."""
        ...

    def authorise(self, session: "SessionLoop", turn_id: str, agent_id: str, at: float) -> Mapping[str, Any]:
        """What the run may do, to be recorded with its dispatch."""
        ...

    def perform(self, session: "SessionLoop", command: Command) -> None: ...
    def consumed(self, turn_id: str, count: int) -> None: ...
    def abandon(self, turn_id: str) -> None:
        """Stop a run whose session can no longer record what it says."""
        ...


@dataclass(slots=True)
class Draft:
    """What one take makes of the session, before it is written down."""

    state: SessionState
    seq: int
    facts: list[Fact] = field(default_factory=list[Fact])
    rows: list[Row] = field(default_factory=list[Row])
    commands: list[Command] = field(default_factory=list[Command])
    compacted: list[tuple[str, int, int]] = field(default_factory=list[tuple[str, int, int]])
    done: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    """Who is told once it is on record."""


class SessionLoop:
    """One session in memory, and the task that works through what arrives for it."""

    def __init__(
        self,
        claim: Claim,
        state: SessionState,
        *,
        log: EventLog,
        records: Records,
        tails: Tails,
        performer: Performer,
        audit: Audit,
        agents: Callable[[], Agents],
        clock: Callable[[], float],
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        retired: Callable[["SessionLoop"], None],
        broken: Callable[["SessionLoop"], None],
    ) -> None:
        self.session_id = claim.session_id
        self._epoch = claim.epoch
        self._head = claim.head
        self._state = state
        self._book = Book(claim.session or SessionRow(claim.session_id, "", "", 0.0), {})
        self._exists = claim.session is not None
        self._since_snapshot = claim.head.seq - claim.snapshot_seq
        self._log = log
        self._records = records
        self._tails = tails
        self._performer = performer
        self._audit_trail = audit
        self._agents = agents
        self._clock = clock
        self._spawn = spawn
        self._retired = retired
        self._broken = broken
        self._waiting: deque[Arrival] = deque()
        self._orders = 0
        self._working = False
        self._quiet: asyncio.TimerHandle | None = None
        self.inputs: dict[str, tuple[RunInput, str]] = {}
        """The inputs of turns that have not ended, with their trace ids."""
        self._collected: Collected | None = None
        self.failed = False

    # --- what the rest of the house sees ---------------------------------------------------------------------------

    @property
    def state(self) -> SessionState:
        return self._state

    @property
    def session(self) -> SessionRow | None:
        return self._book.session if self._exists else None

    @property
    def owner(self) -> SessionRow:
        """To whom it belongs; known from the first input on, also before that is on record."""
        return self._book.session

    @property
    def idle(self) -> bool:
        return not self._working and not self._waiting and self._state.turn is None and not self._state.queue

    def post(self, arrival: Arrival) -> None:
        """Hand something to the session. An ack alone waits a moment for company; everything else wakes the loop."""
        self._waiting.append(arrival)
        if self._working:
            return
        if isinstance(arrival, InputAcknowledged) and len(self._waiting) == 1:
            self._quiet = asyncio.get_running_loop().call_later(QUIET_SECONDS, self._wake)
        else:
            self._wake()

    async def submit(self, new: NewRun, task_id: str, trace_id: str) -> Accepted:
        """Ask for a run and wait until it is on record, or refused."""
        if self._orders >= MAX_WAITING_ORDERS:
            raise HostError(
                ErrorCode.RATE_LIMITED,
                "this conversation has too many requests waiting; try again shortly",
                retryable=True,
            )
        answer: asyncio.Future[Accepted] = asyncio.get_running_loop().create_future()
        self._orders += 1
        try:
            self.post(Order(new, task_id, trace_id, answer))
            return await answer
        finally:
            self._orders -= 1

    async def record(self, message: Message) -> None:
        """Hand over a message and wait until what follows from it is on record."""
        recorded: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.post(Ask(message, recorded))
        await recorded

    def resume(self, runs: Book, inputs: Mapping[str, tuple[RunInput, str]], collected: Collected | None) -> None:
        """Go on in the middle of turns that an earlier owner began."""
        self._book = runs
        self.inputs = dict(inputs)
        self._collected = collected

    # --- one take ----------------------------------------------------------------------------------------------------

    def _wake(self) -> None:
        if self._quiet is not None:
            self._quiet.cancel()
            self._quiet = None
        if not self._working and self._waiting and not self.failed:
            self._working = True
            self._spawn(self._work())

    async def _work(self) -> None:
        taken: list[Arrival] = []
        try:
            while self._waiting:
                taken = self._take()
                await self._take_in(taken)
                taken = []
        except (StaleOwnerError, StorageUnavailableError) as error:
            self._fail([*taken, *self._waiting], _UNAVAILABLE, error)
        except Exception as error:  # a mistake of ours must not leave anybody waiting for ever
            log.exception("a session stopped", action="session.failed", session_id=self.session_id)
            self._fail([*taken, *self._waiting], _MISTAKE, error)
        finally:
            self._working = False
        if self.idle and not self.failed:
            self._retired(self)

    def _take(self) -> list[Arrival]:
        taken: list[Arrival] = []
        size = 0
        while self._waiting and len(taken) < TAKE_MESSAGES and size < TAKE_BYTES:
            arrival = self._waiting.popleft()
            if isinstance(arrival, Said):
                size += arrival.size
            taken.append(arrival)
        return taken

    async def _take_in(self, arrivals: Sequence[Arrival]) -> None:
        now = self._clock()
        draft = Draft(self._state, self._head.seq)
        said: list[Said] = []
        for arrival in arrivals:
            if isinstance(arrival, Said) and (not said or said[-1].turn_id == arrival.turn_id):
                said.append(arrival)
                continue
            self._hear(draft, said, now)
            said = [arrival] if isinstance(arrival, Said) else []
            if isinstance(arrival, Said):
                continue
            if isinstance(arrival, Order):
                await self._order(draft, arrival, now)
            elif isinstance(arrival, Ask):
                self._consider(draft, arrival.message)
                draft.done.append(lambda recorded=arrival.recorded: _resolve(recorded, None))
            else:
                self._consider(draft, arrival)
        self._hear(draft, said, now)
        await self._write(draft)
        self._act(draft)

    def _hear(self, draft: Draft, said: list[Said], now: float) -> None:
        """Results of the live turn that wait together."""
        if not said:
            return
        turn = draft.state.turn
        collected = self._collected
        if turn is None or collected is None or collected.turn_id != said[0].turn_id:
            draft.rows.append(self._audit(now, "output.dropped", said[0].turn_id, "the turn has ended"))
            return
        keys = {id(item.result): item.scope_key for item in said}
        for result in collected.gather([item.result for item in said]):
            if result.type not in KNOWN_TYPES:
                draft.rows.append(
                    self._audit(now, "result.ignored", result.run_id, f"unknown type {result.type[:64]!r}")
                )
            for output in collected.read(result, now):
                self._decide(draft, _with_scope_key(output, keys.get(id(result))))
        self._count(draft, said)

    def _count(self, draft: Draft, said: list[Said]) -> None:
        turn_id, count = said[0].turn_id, len(said)
        draft.done.append(lambda: self._performer.consumed(turn_id, count))

    async def _order(self, draft: Draft, order: Order, now: float) -> None:
        new = order.new
        refusal = self._refusal(draft, new)
        if refusal is not None:
            draft.done.append(lambda: _reject(order.answer, refusal))
            return
        known = next((row for row in draft.rows if isinstance(row, InboxRow) and row.key == new.client_run_id), None)
        if known is None and self._exists:
            known = await self._records.inbox(self.session_id, new.client_run_id)
        if known is not None:
            await self._repeat(draft, order, known)
            return
        self._admit(draft, order, now)

    def _refusal(self, draft: Draft, new: NewRun) -> HostError | None:
        owner = (
            self._book.session
            if self._exists
            else next((row for row in draft.rows if isinstance(row, SessionRow)), None)
        )
        if owner is not None and (owner.workspace_id, owner.user_id) != (
            new.principal.workspace_id,
            new.principal.user_id,
        ):
            return HostError(ErrorCode.NOT_FOUND, "there is no such thread")
        if draft.state.closed:
            return HostError(ErrorCode.SESSION_CLOSED, "this conversation is closed; open it again to go on")
        return None

    async def _repeat(self, draft: Draft, order: Order, known: InboxRow) -> None:
        """The same request again gets the same answer; another one under the same name is refused."""
        if known.body_hash != order.new.body_hash:
            text = (
                f"runId {order.new.client_run_id!r} was already used in this thread with another body; use a new runId"
            )
            draft.done.append(lambda: _reject(order.answer, HostError(ErrorCode.CONFLICT, text)))
            return
        run = self._book.runs.get(known.run_id) or await self._records.run(known.run_id)
        first = run.first_seq if run is not None else 1
        answer = Accepted(known.run_id, self.session_id, order.new.client_run_id, known.opened_session, first)
        draft.done.append(lambda: _resolve(order.answer, answer))

    def _admit(self, draft: Draft, order: Order, now: float) -> None:
        new = order.new
        opens = not self._exists and not any(isinstance(row, SessionRow) for row in draft.rows)
        if opens:
            self._book.session = SessionRow(self.session_id, new.principal.workspace_id, new.principal.user_id, now)
            draft.rows.append(self._book.session)
        draft.rows.append(InboxRow(self.session_id, new.client_run_id, new.body_hash, order.task_id, now, opens))
        earlier = draft.seq > 0
        about = {
            "client_run_id": new.client_run_id,
            "workspace_id": new.principal.workspace_id,
            "user_id": new.principal.user_id,
            "source": new.source,
            "door": new.door,
        }
        payload = {"message": new.message, "text": new.text, "params": new.params, "run": about}
        given = RunInput(new.text, new.message, new.params, new.source, 0, now, earlier)
        self.inputs[order.task_id] = (given, order.trace_id)
        self._decide(
            draft,
            UserInput(
                turn_id=order.task_id,
                trace_id=order.trace_id,
                user_id=new.principal.user_id,
                payload=payload,
                metadata={},
                agents=self._agents(),
                agent_id=new.agent_id,
                at=now,
            ),
        )
        first = self.inputs[order.task_id][0].seq if order.task_id in self.inputs else draft.seq
        answer = Accepted(order.task_id, self.session_id, new.client_run_id, opens, first)
        draft.done.append(lambda: _resolve(order.answer, answer))

    def _consider(self, draft: Draft, message: Message) -> None:
        """Decide one message; words the turn left open are kept before it can end."""
        collected = self._collected
        ends = isinstance(message, CancelAcknowledged | CancelTimedOut | RunFailed)
        if ends and collected is not None and collected.turn_id == message.turn_id:
            for closing in collected.close(message.at):
                self._decide(draft, closing)
        self._decide(draft, message)

    def _decide(self, draft: Draft, message: Message) -> None:
        decision = decide(draft.state, message)
        for fact in decision.facts:
            self._add(draft, fact, message.at)
        draft.commands.extend(decision.commands)
        draft.rows.extend(self._noted(note, message.at) for note in decision.notes)

    def _add(self, draft: Draft, decided: Fact, at: float) -> None:
        draft.seq += 1
        fact = decided
        if fact.event is Event.USER_INPUT:
            fact = self._input(draft, fact, at)
        elif fact.is_delta and self._collected is not None:
            self._collected.note(draft.seq, fact)
        elif "first_seq" in fact.metadata:
            first = int(fact.metadata["first_seq"])
            draft.compacted.append((str(fact.turn_id), first, first + len(fact.metadata["lengths"]) - 1))
        draft.facts.append(fact)
        draft.rows.extend(self._book.rows(draft.seq, fact))
        draft.state = evolve(draft.state, fact)

    def _input(self, draft: Draft, fact: Fact, at: float) -> Fact:
        turn_id = str(fact.turn_id)
        if fact.target is Target.SYSTEM:
            given, trace_id = self.inputs[turn_id]
            self.inputs[turn_id] = (replace(given, seq=draft.seq), trace_id)
            return fact
        self._collected = Collected(turn_id, str(fact.target_id))
        granted = self._performer.authorise(self, turn_id, str(fact.target_id), at)
        draft.rows.append(self._audit(at, "run.start", turn_id, "", result="allowed", resource=str(fact.target_id)))
        return replace(fact, metadata={**fact.metadata, **granted})

    async def _write(self, draft: Draft) -> None:
        if not draft.facts and not draft.rows:
            return
        sealed, after = seal(self._head, draft.facts)
        batch = self._batch(draft, sealed, after)
        if sealed:
            await self._log.append(batch)
            self._tails.publish(self.session_id, sealed)
        else:
            await self._records.write([row for row in draft.rows if isinstance(row, AuditRow)])
        self._head = after
        self._state = draft.state
        self._exists = self._exists or bool(sealed)

    def _batch(self, draft: Draft, sealed: Sequence[StoredFact], after: Head) -> Batch:
        self._since_snapshot += len(sealed)
        ended = [command.turn_id for command in draft.commands if isinstance(command, EndRun)]
        for turn_id in ended:
            draft.rows.extend(self._audit_trail.take(turn_id))
        snapshot = to_bytes(draft.state) if ended or self._since_snapshot >= SNAPSHOT_EVERY else b""
        if snapshot:
            self._since_snapshot = 0
        return Batch(
            session_id=self.session_id,
            epoch=self._epoch,
            before=self._head,
            after=after,
            facts=sealed,
            rows=settled(draft.rows),
            snapshot=snapshot,
            compacted=draft.compacted,
        )

    def _act(self, draft: Draft) -> None:
        for command in draft.commands:
            if isinstance(command, EndRun):
                self.inputs.pop(command.turn_id, None)
            self._performer.perform(self, command)
        for tell in draft.done:
            tell()

    # --- when it cannot go on ----------------------------------------------------------------------------------------

    def _fail(self, arrivals: Iterable[Arrival], refusal: tuple[ErrorCode, str], cause: Exception) -> None:
        self.failed = True
        self._waiting.clear()
        error = cause if isinstance(cause, HostError) else HostError(*refusal, retryable=True)
        for arrival in arrivals:
            if isinstance(arrival, Order):
                _reject(arrival.answer, error)
            elif isinstance(arrival, Ask):
                _reject(arrival.recorded, error)
        self._broken(self)

    def _noted(self, note: Note, at: float) -> AuditRow:
        return self._audit(at, note.action, note.turn_id, note.reason)

    def _audit(
        self, at: float, action: str, turn_id: str | None, reason: str, *, result: str = "dropped", resource: str = ""
    ) -> AuditRow:
        session = self._book.session
        return AuditRow(
            time=at,
            workspace_id=session.workspace_id,
            actor=f"user:{session.user_id}",
            action=action,
            resource=resource,
            scope=self.session_id,
            result=result,
            reason=reason,
            run_id=turn_id,
            session_id=self.session_id,
        )


def _with_scope_key(output: OutputReceived | RunFailed, scope_key: str | None) -> OutputReceived | RunFailed:
    if scope_key is None or isinstance(output, RunFailed):
        return output
    return replace(output, metadata={**output.metadata, "scope_key": scope_key})


def _resolve(future: asyncio.Future[Any], value: Any) -> None:
    if not future.done():
        future.set_result(value)


def _reject(future: asyncio.Future[Any], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
