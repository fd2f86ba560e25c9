"""What one take makes of a session, before it is written down: facts, the rows that follow, and what to do afterwards.

A draft works on the memory of the session's owner. When it cannot be written, that memory is thrown away with it.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from paddock.host.announced import REFUSED
from paddock.host.arrivals import Accepted, Arrival, Ask, NewRun, Order, Said
from paddock.host.inputs import HANDOVER_ACTION, came_along, handover_input, handover_wish, rows_of, user_input
from paddock.host.watch import Watch
from paddock.ports import Claim
from paddock.rules.chain import Head
from paddock.rules.deliveries import follows
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.outputs import KNOWN_TYPES, Collected
from paddock.rules.projection import Book
from paddock.rules.results import Result
from paddock.rules.rows import AuditRow, InboxRow, Row, SessionRow, ThreadNameRow, TransactionRow
from paddock.rules.run_context import RunInput
from paddock.rules.session.commands import Command
from paddock.rules.session.decide import Decision, decide
from paddock.rules.session.evolve import evolve
from paddock.rules.session.facts import Event, Fact, Target
from paddock.rules.session.invariants import violations
from paddock.rules.session.messages import (
    Agents,
    CancelAcknowledged,
    CancelRequested,
    CancelTimedOut,
    CloseRequested,
    HandoverAnswered,
    InviteRequested,
    Message,
    OpenRequested,
    OutputReceived,
    RemoveRequested,
    RunFailed,
    SwitchRequested,
)
from paddock.rules.session.state import SessionState
from paddock.rules.values import replace

STEERING = frozenset({"TURN_QUEUED", "TURN_STEERED"})
JUDGED = frozenset({"state.updated", "artifact.created"})
"""Results that have an effect: each leaves an audit row."""
RECENT_ANSWERS = 4096
"""More than can wait at once: a repeated request whose first is not on record yet finds its answer here."""

WISHES: Mapping[type[Any], str] = {
    CancelRequested: "run.cancel",
    SwitchRequested: "session.switch_agent",
    InviteRequested: "session.invite_agent",
    RemoveRequested: "session.remove_agent",
    HandoverAnswered: "session.answer_handover",
    OpenRequested: "session.open",
    CloseRequested: "session.close",
}
"""What people ask of a session, as the audit names it."""

Authorise = Callable[[str, str, float], Mapping[str, Any]]
"""(turn, agent, time) to what the run may do, recorded with its dispatch."""


class Memory:
    """What the owner of a session remembers of it between two takes."""

    def __init__(self, claim: Claim, state: SessionState) -> None:
        self.session_id = claim.session_id
        self.epoch = claim.epoch
        self.head: Head = claim.head
        self.state = state
        self.book = Book(claim.session or SessionRow(claim.session_id, "", "", 0.0), {})
        self.exists = claim.session is not None
        self.since_snapshot = claim.head.seq - claim.snapshot_seq
        self.inputs: dict[str, tuple[RunInput, str]] = {}
        """The inputs of turns that have not ended, with their trace ids."""
        self.collected: Collected | None = None
        """What the live turn has said so far."""
        self.answers: OrderedDict[str, tuple[bytes, Accepted]] = OrderedDict()
        self.handing: dict[str, Mapping[str, Any]] = {}
        """Where answers go of turns that ask for another agent, if that is a platform: whoever takes over answers
        there, whatever else was said in between."""

    def hand(self, turn_id: str | None) -> None:
        """A turn asks for another agent: remember where its answers go, also when it has ended."""
        given = self.inputs.get(turn_id or "")
        if given is not None and given[0].event is not None and given[0].event.delivery is not None:
            self.handing[turn_id or ""] = given[0].event.delivery


class Surroundings(Protocol):
    """What a draft asks of the house."""

    @property
    def watch(self) -> Watch: ...

    def agents(self) -> Agents: ...
    def authorise(self, turn_id: str, agent_id: str, at: float) -> Mapping[str, Any]: ...
    def consumed(self, turn_id: str, count: int) -> None: ...
    def steers(self, turn_id: str) -> bool: ...
    def deliveries_wait(self) -> None:
        """Something is on record that a platform has to hear."""
        ...


class Draft:
    """One take in the making."""

    __slots__ = (
        "_along",
        "_around",
        "_memory",
        "_now",
        "_watched",
        "commands",
        "compacted",
        "done",
        "facts",
        "over",
        "rows",
        "seq",
        "state",
    )

    def __init__(self, memory: Memory, around: Surroundings, now: float) -> None:
        self._memory = memory
        self._around = around
        self._now = now
        self._watched = around.watch.looks()
        self._along: list[Fact] = []
        """What the next input brings along."""
        self.state = memory.state
        self.seq = memory.head.seq
        self.facts: list[Fact] = []
        self.rows: list[Row] = []
        self.commands: list[Command] = []
        self.compacted: list[tuple[str, int, int]] = []
        self.over: list[str] = []
        """Transactions that ended."""
        self.done: list[Callable[[], None]] = []
        """Who is told once it is on record."""

    def take(self, arrivals: Sequence[Arrival]) -> None:
        """Decide everything that arrived, in order; results that wait together are heard together."""
        said: list[Said] = []
        for arrival in arrivals:
            if type(arrival) is Said:
                if said and said[-1].turn_id != arrival.turn_id:
                    self._hear(said)
                    said = []
                said.append(arrival)
                continue
            if said:
                self._hear(said)
                said = []
            self._take_one(arrival)
        if said:
            self._hear(said)

    def _take_one(self, arrival: Order | Ask | Said | Message) -> None:
        match arrival:
            case Order():
                self._order(arrival)
            case Ask():
                self._ask(arrival)
            case Said():
                self._hear([arrival])
            case _:
                self._consider(arrival)

    def _ask(self, ask: Ask) -> None:
        refusal = self._unasked(ask)
        if refusal is not None:
            self.done.append(partial(reject, ask.recorded, refusal))
            return
        self.rows += ask.rows
        decision = self._consider(ask.message)
        self.done.append(partial(resolve, ask.recorded, decision))

    def _unasked(self, ask: Ask) -> HostError | None:
        """Why this person may not ask that of this session; an opening makes a new one theirs."""
        memory, who = self._memory, ask.principal
        if who is None:
            return None
        if memory.exists or memory.answers or self.facts:
            mine = (memory.book.session.workspace_id, memory.book.session.user_id) == (who.workspace_id, who.user_id)
            return None if mine else no_such_thread()
        if not isinstance(ask.message, OpenRequested):
            return no_such_thread()
        memory.book.session = SessionRow(memory.session_id, who.workspace_id, who.user_id, self._now)
        self.rows.append(memory.book.session)
        return None

    # --- results of the live turn ------------------------------------------------------------------------------------

    def _hear(self, said: list[Said]) -> None:
        turn_id = said[0].turn_id
        collected = self._memory.collected
        if self.state.turn is None or collected is None or collected.turn_id != turn_id:
            self.rows.append(self.audit("output.dropped", turn_id, "the turn has ended"))
            return
        for item in said:
            self.rows += item.rows
        keys = {id(item.result): item.scope_key for item in said if item.scope_key is not None}
        for result in collected.gather([item.result for item in said]):
            if result.type == "action.requested" and result.data.get("action") == HANDOVER_ACTION:
                self._decide(handover_wish(result, collected.agent_id, self._around.agents(), self._now))
                continue
            if result.type not in KNOWN_TYPES or result.type in JUDGED:
                self.rows.append(self._judged(result))
            for output in collected.read(result, self._now):
                self._decide(_with_scope_key(output, keys.get(id(result))) if keys else output)
        self.done.append(partial(self._around.consumed, turn_id, len(said)))  # a closure would make the draft a cycle

    def _judged(self, result: Result) -> AuditRow:
        """The audit row of a result that something was decided about."""
        if result.type == "state.updated":
            where = f"{result.data['scope']}/{result.data['key']}"
            return self.audit("state.updated", result.run_id, "in the grant", result="allowed", resource=where)
        if result.type == "state.refused":
            return self.audit("state.updated", result.run_id, "outside the grant or its cap", result="unauthorized")
        if result.type == "artifact.created":
            kept = str(result.data.get("artifact_id"))
            return self.audit("artifact.created", result.run_id, "kept", result="allowed", resource=kept)
        if result.type == REFUSED:
            return self.audit("artifact.created", result.run_id, str(result.data["reason"]), result="refused")
        return self.audit("result.ignored", result.run_id, f"unknown type {result.type[:64]!r}")

    # --- new runs ----------------------------------------------------------------------------------------------------

    def _order(self, order: Order) -> None:
        refusal = self._refusal(order.new)
        if refusal is not None:
            self.done.append(lambda: reject(order.answer, refusal))
            return
        known = self._memory.answers.get(order.new.client_run_id)
        answer = self._admit(order) if known is None else same_answer(order.new, *known)
        if isinstance(answer, HostError):
            self.done.append(lambda: reject(order.answer, answer))
        else:
            self.done.append(lambda: resolve(order.answer, answer))

    def _refusal(self, new: NewRun) -> HostError | None:
        memory = self._memory
        if (memory.exists or memory.answers) and not owns(memory.book.session, new):
            return no_such_thread()
        if self.state.closed or self.state.closing:
            return HostError(ErrorCode.SESSION_CLOSED, "this conversation is closed; open it again to go on")
        if new.replaces is not None and (self.state.turn is not None or self.state.queue):
            text = "something is still being answered in this conversation; wait for it or cancel it first"
            return HostError(ErrorCode.CONFLICT, text, retryable=True)
        return None

    def _admit(self, order: Order) -> Accepted:
        memory, new, now = self._memory, order.new, self._now
        opens = not memory.exists and not memory.answers and not self.facts
        if opens:
            memory.book.session = SessionRow(memory.session_id, new.principal.workspace_id, new.principal.user_id, now)
            self.rows.append(memory.book.session)
            if new.thread_name is not None:
                self.rows.append(_named(memory.book.session, new.thread_name))
        self.rows += new.rows
        self.rows.append(InboxRow(memory.session_id, new.client_run_id, new.body_hash, order.task_id, now, opens))
        self.rows += rows_of(new, order.task_id, now)
        given = RunInput(
            new.text,
            new.message,
            new.params,
            new.source,
            0,
            now,
            self.seq > 0 or bool(new.supplied),
            new.event,
            new.attachments,
            new.door,
            new.locale,
            new.time_zone,
        )
        memory.inputs[order.task_id] = (given, order.trace_id)
        first = self._first_number()
        self._along = came_along(order, now) if new.supplied else []
        self._decide(user_input(order, self._agents(), now))
        answer = Accepted(order.task_id, memory.session_id, new.client_run_id, opens, first)
        memory.answers[new.client_run_id] = (new.body_hash, answer)
        if len(memory.answers) > RECENT_ANSWERS:
            memory.answers.popitem(last=False)
        return answer

    def _agents(self) -> Agents:
        """As configured; a policy of steering counts only where the runner of the live turn takes part in it."""
        agents, turn = self._around.agents(), self.state.turn
        if turn is None or agents.while_busy.get(turn.agent_id) != "steer" or self._around.steers(turn.turn_id):
            return agents
        return replace(agents, while_busy={**agents.while_busy, turn.agent_id: "queue"})

    def _first_number(self) -> int:
        """The number the input, or what came along with it, will get: only the opening is recorded before it."""
        return self.seq + (1 if self.state.opened else 2)

    # --- deciding ----------------------------------------------------------------------------------------------------

    def _consider(self, message: Message) -> Decision:
        """Decide one message; words the turn left open are kept before it can end."""
        if wish := WISHES.get(type(message)):
            turn_id = message.turn_id if type(message) is CancelRequested else None
            about, reason = str(getattr(message, "agent_id", "") or ""), getattr(message, "reason", "user")
            row = self.audit(wish, turn_id, reason, result="allowed", resource=about)
            who = message.user_id if type(message) is CancelRequested else ""  # an administrator may stop anybody's run
            self.rows.append(replace(row, actor=f"user:{who}") if who else row)
        collected = self._memory.collected
        ends = isinstance(message, CancelAcknowledged | CancelTimedOut | RunFailed)
        if ends and collected is not None and collected.turn_id == message.turn_id:
            for closing in collected.close(message.at):
                self._decide(closing)
        return self._decide(message)

    def _decide(self, message: Message) -> Decision:
        before = self.state
        decision = decide(before, message)
        for fact in decision.facts:
            self._add(fact)
        if self._watched and (broken := violations(before, message, decision, self.state)):
            self._around.watch.report(self._memory.session_id, broken)
        self.commands += decision.commands
        for note in decision.notes:
            self.rows.append(self.audit(note.action, note.turn_id, note.reason))
        if self.state.transactions is not before.transactions:
            self._follow_transactions(before)
        return decision

    def _follow_transactions(self, before: SessionState) -> None:
        """Which are under way is on record beside the facts, so that a new start finds them."""
        session_id = self._memory.session_id
        for found in self.state.transactions:
            if before.transaction(found.tx_id) is None:
                self._memory.hand(found.turn_id)
                self.rows.append(TransactionRow(found.tx_id, session_id, found.kind, self._now))
        for found in before.transactions:
            if self.state.transaction(found.tx_id) is None:
                self.rows.append(TransactionRow(found.tx_id, session_id, found.kind, found.created_at, over=True))
                self._memory.handing.pop(found.turn_id or "", None)
                self.over.append(found.tx_id)

    def _add(self, fact: Fact) -> None:
        if self._along and fact.event is Event.USER_INPUT:
            along, self._along = self._along, []
            for one in along:
                self._add(one)
        self.seq += 1
        memory = self._memory
        if fact.event is Event.USER_INPUT:
            fact = self._input(fact)
        elif fact.subtype == "HANDOVER_CONTEXT":
            fact = self._input(self._handed_over(fact))
        elif fact.subtype in STEERING:
            self._steering(fact)
        elif fact.subtype == "CHUNK":
            if memory.collected is not None:
                memory.collected.note(self.seq, fact)
        elif "first_seq" in fact.metadata:
            first = int(fact.metadata["first_seq"])
            self.compacted.append((str(fact.turn_id), first, first + len(fact.metadata["lengths"]) - 1))
        self.facts.append(fact)
        rows = memory.book.rows(self.seq, fact)
        if rows:
            self.rows += rows
            self._deliver(fact, rows)
        self.state = evolve(self.state, fact)

    def _deliver(self, fact: Fact, rows: Sequence[Row]) -> None:
        """What a platform is to hear of it, in the same commit."""
        given = self._memory.inputs.get(fact.turn_id or "")
        if given is None or given[0].event is None or given[0].event.delivery is None:
            return
        deliveries = follows(given[0], rows, self._memory.book.session.workspace_id, self._now, fact)
        if deliveries:
            self.rows += deliveries
            self.done.append(self._around.deliveries_wait)

    def _steering(self, fact: Fact) -> None:
        """What became of input that the running turn might have taken in: on the audit trail, each time."""
        if fact.subtype == "TURN_STEERED":
            into = str(fact.payload["steered_into"])
            self.rows.append(self.audit("steering.injected", fact.turn_id, "taken in", result="allowed", resource=into))
        elif fact.metadata.get("steers") and self.state.turn is not None:
            into = self.state.turn.turn_id
            self.rows.append(self.audit("steering.queued", fact.turn_id, "offered", result="allowed", resource=into))

    def _handed_over(self, fact: Fact) -> Fact:
        """Who takes over is asked what the other one was, and answers where that one would have."""
        memory = self._memory
        if (delivery := memory.handing.get(fact.payload["parent_turn_id"])) is not None:
            fact = replace(fact, metadata={**fact.metadata, "delivery": delivery})
        memory.inputs[str(fact.turn_id)] = (handover_input(fact, self.seq), str(fact.trace_id))
        return fact

    def _input(self, fact: Fact) -> Fact:
        memory, turn_id = self._memory, str(fact.turn_id)
        if self.state.queue and any(queued.turn_id == turn_id and queued.steers for queued in self.state.queue):
            self.rows.append(self.audit("steering.dropped", turn_id, "not taken in; it gets a turn of its own"))
        if fact.target is Target.SYSTEM:
            given, trace_id = memory.inputs[turn_id]
            memory.inputs[turn_id] = (replace(given, seq=self.seq), trace_id)
            return fact
        agent_id = str(fact.target_id)
        memory.collected = Collected(turn_id, agent_id)
        granted = self._around.authorise(turn_id, agent_id, self._now)
        verdict = ("allowed", "manifest, agent and scope") if granted else ("unauthorized", "its runner is not known")
        self.rows.append(self.audit("run.start", turn_id, verdict[1], result=verdict[0], resource=agent_id))
        return replace(fact, metadata={**fact.metadata, **granted})

    def audit(
        self, action: str, turn_id: str | None, reason: str, *, result: str = "dropped", resource: str = ""
    ) -> AuditRow:
        session = self._memory.book.session
        return AuditRow(
            time=self._now,
            workspace_id=session.workspace_id,
            actor=f"user:{session.user_id}",
            action=action,
            resource=resource,
            scope=session.session_id,
            result=result,
            reason=reason,
            run_id=turn_id,
            session_id=session.session_id,
        )


def _with_scope_key(output: OutputReceived | RunFailed, scope_key: str | None) -> OutputReceived | RunFailed:
    if scope_key is None or isinstance(output, RunFailed):
        return output
    return replace(output, metadata={**output.metadata, "scope_key": scope_key})


def _named(session: SessionRow, name: str) -> ThreadNameRow:
    return ThreadNameRow(session.workspace_id, session.user_id, name, session.session_id)


def owns(session: SessionRow, new: NewRun) -> bool:
    return (session.workspace_id, session.user_id) == (new.principal.workspace_id, new.principal.user_id)


def no_such_thread() -> HostError:
    return HostError(ErrorCode.NOT_FOUND, "there is no such thread")


def same_answer(new: NewRun, body_hash: bytes, answer: Accepted) -> Accepted | HostError:
    """The same request again gets the same answer; another one under the same name is refused."""
    if body_hash == new.body_hash:
        return answer
    text = f"runId {new.client_run_id!r} was already used in this thread with another body or agent; use a new runId"
    return HostError(ErrorCode.CONFLICT, text)


def resolve(future: asyncio.Future[Any], value: Any) -> None:
    if not future.done():
        future.set_result(value)


def reject(future: asyncio.Future[Any], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
