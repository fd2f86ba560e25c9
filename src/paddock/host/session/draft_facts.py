"""The facts of a draft: what the session machine decided, numbered, with the rows and commands that follow from each.

Who may ask for what was seen to before (`draft.py`).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from paddock.host.session.inputs import handover_input
from paddock.host.session.invariant_watch import Watch
from paddock.host.session.memory import SessionMemory
from paddock.rules.platforms.deliveries import follows
from paddock.rules.rows.projection import SUBTHREAD
from paddock.rules.rows.rows import AuditRow, Row, TransactionRow
from paddock.rules.run.outputs import Collected
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
    RemoveRequested,
    RunFailed,
    SwitchRequested,
)
from paddock.rules.session.state import SessionState
from paddock.rules.values import replace

AUDITED = frozenset({"TURN_QUEUED", "TURN_STEERED", "RUN_GRANTED"})
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


class DraftContext(Protocol):
    """Needs of a draft, as a port."""

    @property
    def watch(self) -> Watch: ...

    def agents(self) -> Agents: ...
    def authorise(self, turn_id: str, agent_id: str, at: float) -> Mapping[str, Any]: ...
    def consumed(self, turn_id: str, count: int) -> None: ...
    def steers(self, turn_id: str) -> bool: ...
    def deliveries_wait(self) -> None:
        """Something is on record that a platform has to hear."""
        ...


class DraftFacts:
    """Messages become facts, facts become rows; both in order, none on record yet."""

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

    def __init__(self, memory: SessionMemory, around: DraftContext, now: float) -> None:
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

    def consider(self, message: Message) -> Decision:
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
                self.decide(closing)
        return self.decide(message)

    def decide(self, message: Message) -> Decision:
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
        elif fact.subtype in AUDITED:
            self._audited(fact)
        elif fact.subtype == "CHUNK":
            if memory.collected is not None:
                memory.collected.note(self.seq, fact)
        elif "first_seq" in fact.metadata:
            first = int(fact.metadata["first_seq"])
            self.compacted.append((str(fact.turn_id), first, first + len(fact.metadata["lengths"]) - 1))
        self.facts.append(fact)
        rows = memory.projection.rows(self.seq, fact)
        if rows:
            self.rows += rows
            self._deliver(fact, rows)
        self.state = evolve(self.state, fact)

    def _deliver(self, fact: Fact, rows: Sequence[Row]) -> None:
        """Add the deliveries that follow from a fact, in the same commit."""
        given = self._memory.inputs.get(fact.turn_id or "")
        if given is None or given[0].event is None or given[0].event.delivery is None:
            return
        deliveries = follows(given[0], rows, self._memory.projection.session.workspace_id, self._now, fact)
        if deliveries:
            self.rows += deliveries
            self.done.append(self._around.deliveries_wait)

    def _audited(self, fact: Fact) -> None:
        """Audit steered input and grants that came late."""
        if fact.subtype == "RUN_GRANTED":
            self._allowed(str(fact.turn_id), fact.payload["agent_id"])
        elif fact.subtype == "TURN_STEERED":
            into = str(fact.payload["steered_into"])
            self.rows.append(self.audit("steering.injected", fact.turn_id, "taken in", result="allowed", resource=into))
        elif fact.metadata.get("steers") and self.state.turn is not None:
            into = self.state.turn.turn_id
            self.rows.append(self.audit("steering.queued", fact.turn_id, "offered", result="allowed", resource=into))

    def _handed_over(self, fact: Fact) -> Fact:
        """Give the heir of a handover the input and the reply target of its predecessor."""
        memory = self._memory
        if (asked := memory.handing.get(fact.payload["parent_turn_id"])) is not None:
            there = {"delivery": asked.delivery, SUBTHREAD: asked.subthread_id}
            told = {name: value for name, value in there.items() if value is not None}
            fact = replace(fact, metadata={**fact.metadata, **told})
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
        given, trace_id = memory.inputs[turn_id]
        waited = any(queued.turn_id == turn_id and queued.waits for queued in self.state.queue)
        memory.inputs[turn_id] = (replace(given, begun_seq=self.seq, waited=waited), trace_id)
        agent_id = str(fact.target_id)
        memory.collected = Collected(turn_id, agent_id)
        granted = self._around.authorise(turn_id, agent_id, self._now)
        if "grant" in granted:
            self._allowed(turn_id, agent_id)
        elif not granted:
            why = "its runner is not known"
            self.rows.append(self.audit("run.start", turn_id, why, result="unauthorized", resource=agent_id))
        return replace(fact, metadata={**fact.metadata, **granted})

    def _allowed(self, turn_id: str, agent_id: str) -> None:
        why = "manifest, agent and scope"
        self.rows.append(self.audit("run.start", turn_id, why, result="allowed", resource=agent_id))

    def audit(
        self, action: str, turn_id: str | None, reason: str, *, result: str = "dropped", resource: str = ""
    ) -> AuditRow:
        session = self._memory.projection.session
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
