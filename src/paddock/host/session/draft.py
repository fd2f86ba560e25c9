"""The draft of one take: decided facts, numbered, with the rows and commands that follow from each.

Whether the sender may ask is checked before (`take.py`). A draft works on the memory of the session's owner; when it
cannot be written, that memory is thrown away with it.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import structlog

from paddock.host.session.memory import SessionMemory, handover_input
from paddock.rules.log.projection import SUBTHREAD
from paddock.rules.platforms.deliveries import deliveries_after
from paddock.rules.rows.rows import AuditRow, Row, TransactionRow
from paddock.rules.run.outputs import Collected
from paddock.rules.session import messages
from paddock.rules.session.commands import Command
from paddock.rules.session.decide import decide
from paddock.rules.session.decision import Decision
from paddock.rules.session.evolve import evolve
from paddock.rules.session.facts import Event, Fact, Target
from paddock.rules.session.invariants import violations
from paddock.rules.session.state import SessionState
from paddock.rules.values import replace

if TYPE_CHECKING:
    from paddock.host.session.loop import SessionLoop
    from paddock.host.session.services import SessionServices

log = structlog.get_logger("paddock.watch")

AUDITED = frozenset({"TURN_QUEUED", "TURN_STEERED", "RUN_GRANTED"})
GRANTED = "manifest, agent and scope"
WISHES: Mapping[type[Any], str] = {
    messages.CancelRequested: "run.cancel",
    messages.SwitchRequested: "session.switch_agent",
    messages.InviteRequested: "session.invite_agent",
    messages.RemoveRequested: "session.remove_agent",
    messages.HandoverAnswered: "session.answer_handover",
    messages.OpenRequested: "session.open",
    messages.CloseRequested: "session.close",
}
"""Names in the audit of what people ask of a session."""
SOMETIMES = 64
"""One take in this many is checked; a check costs about as much as the step it checks."""


class InvariantWatch:
    """Checks the invariants of the session machine while it works: every take in tests, some of them in production."""

    def __init__(self, every: int = SOMETIMES) -> None:
        self._every = every
        self._takes = count()
        self.found: list[str] = []
        """The newest violations. It should stay empty."""
        self.total = 0

    def is_due(self) -> bool:
        return next(self._takes) % self._every == 0

    def report(self, session_id: str, broken: Sequence[str]) -> None:
        self.total += len(broken)
        self.found = [*self.found, *broken][-100:]
        log.error(
            "the session machine broke a promise", action="session.invariant", session_id=session_id, broken=broken
        )


class Draft:
    """Facts and rows in order, none of them on record yet."""

    __slots__ = (
        "_memory",
        "_services",
        "_session",
        "_watched",
        "before_input",
        "commands",
        "compacted",
        "done",
        "facts",
        "now",
        "over",
        "rows",
        "seq",
        "state",
    )

    def __init__(self, session: "SessionLoop", memory: SessionMemory, services: "SessionServices", now: float) -> None:
        self._session = session
        self._memory = memory
        self._services = services
        self._watched = services.watch.is_due()
        self.now = now
        self.before_input: list[Fact] = []
        """Facts to record right before the next input."""
        self.state = memory.state
        self.seq = memory.head.seq
        self.facts: list[Fact] = []
        self.rows: list[Row] = []
        self.commands: list[Command] = []
        self.compacted: list[tuple[str, int, int]] = []
        self.over: list[str] = []
        """Transactions that ended."""
        self.done: list[Callable[[], None]] = []
        """Called once the draft is on record."""

    def consider(self, message: messages.Message) -> Decision:
        """Decide one message; output that the turn left open is closed before the turn can end."""
        if wish := WISHES.get(type(message)):
            run_id = message.turn_id if type(message) is messages.CancelRequested else None
            about, reason = str(getattr(message, "agent_id", "") or ""), getattr(message, "reason", "user")
            row = self.audit(wish, run_id, reason, result="allowed", resource=about)
            # an administrator may stop anybody's run
            who = message.user_id if type(message) is messages.CancelRequested else ""
            self.rows.append(replace(row, actor=f"user:{who}") if who else row)
        collected = self._memory.collected
        ends = isinstance(message, messages.CancelAcknowledged | messages.CancelTimedOut | messages.RunFailed)
        if ends and collected is not None and collected.turn_id == message.turn_id:
            for closing in collected.close(message.at):
                self.decide(closing)
        return self.decide(message)

    def decide(self, message: messages.Message) -> Decision:
        before = self.state
        decision = decide(before, message)
        for fact in decision.facts:
            self._add(fact)
        if self._watched and (broken := violations(before, message, decision, self.state)):
            self._services.watch.report(self._memory.session_id, broken)
        self.commands += decision.commands
        for note in decision.notes:
            self.rows.append(self.audit(note.action, note.turn_id, note.reason))
        if self.state.transactions is not before.transactions:
            self._follow_transactions(before)
        return decision

    def _follow_transactions(self, before: SessionState) -> None:
        """Record the transactions under way beside the facts, so that the next start finds them."""
        session_id = self._memory.session_id
        for found in self.state.transactions:
            if before.transaction(found.tx_id) is None:
                self._memory.hand(found.turn_id)
                self.rows.append(TransactionRow(found.tx_id, session_id, found.kind, self.now))
        for found in before.transactions:
            if self.state.transaction(found.tx_id) is None:
                self.rows.append(TransactionRow(found.tx_id, session_id, found.kind, found.created_at, over=True))
                self._memory.handing.pop(found.turn_id or "", None)
                self.over.append(found.tx_id)

    def _add(self, fact: Fact) -> None:
        if self.before_input and fact.event is Event.USER_INPUT:
            before, self.before_input = self.before_input, []
            for earlier in before:
                self._add(earlier)
        self.seq += 1
        memory = self._memory
        if fact.event is Event.USER_INPUT or fact.subtype == "HANDOVER_CONTEXT":
            fact = self._handed_over(fact) if fact.subtype == "HANDOVER_CONTEXT" else fact
            self._place_input(fact)
            if fact.target is not Target.SYSTEM:
                fact = self._authorise(fact)
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
        given = self._memory.inputs.get(fact.turn_id or "")
        if given is None or given[0].event is None or given[0].event.delivery is None:
            return
        deliveries = deliveries_after(given[0], rows, self._memory.projection.session.workspace_id, self.now, fact)
        if deliveries:
            self.rows += deliveries
            self.done.append(self._services.deliveries_wait)

    def _audited(self, fact: Fact) -> None:
        """Audit steered input and grants that came late."""
        if fact.subtype == "RUN_GRANTED":
            agent_id = str(fact.payload["agent_id"])
            self.rows.append(self.audit("run.start", fact.turn_id, GRANTED, result="allowed", resource=agent_id))
        elif fact.subtype == "TURN_STEERED":
            into = str(fact.payload["steered_into"])
            self.rows.append(self.audit("steering.injected", fact.turn_id, "taken in", result="allowed", resource=into))
        elif fact.metadata.get("steers") and self.state.turn is not None:
            into = self.state.turn.turn_id
            self.rows.append(self.audit("steering.queued", fact.turn_id, "offered", result="allowed", resource=into))

    def _handed_over(self, fact: Fact) -> Fact:
        """Give the agent that takes over the input and the reply target of its predecessor."""
        memory = self._memory
        if (asked := memory.handing.get(fact.payload["parent_turn_id"])) is not None:
            target = {"delivery": asked.delivery, SUBTHREAD: asked.subthread_id}
            known = {name: value for name, value in target.items() if value is not None}
            fact = replace(fact, metadata={**fact.metadata, **known})
        memory.inputs[str(fact.turn_id)] = (handover_input(fact, self.seq), str(fact.trace_id))
        return fact

    def _place_input(self, fact: Fact) -> None:
        """Note the number under which an input is recorded, or under which its run begins."""
        memory, run_id = self._memory, str(fact.turn_id)
        if self.state.queue and any(queued.turn_id == run_id and queued.steers for queued in self.state.queue):
            self.rows.append(self.audit("steering.dropped", run_id, "not taken in; it gets a turn of its own"))
        given, trace_id = memory.inputs[run_id]
        if fact.target is Target.SYSTEM:
            given = replace(given, seq=self.seq)
        else:
            waited = any(queued.turn_id == run_id and queued.waits for queued in self.state.queue)
            given = replace(given, begun_seq=self.seq, waited=waited)
        memory.inputs[run_id] = (given, trace_id)

    def _authorise(self, fact: Fact) -> Fact:
        """Authorise the run that this fact dispatches: it is live from here on, and its grant is recorded with it."""
        run_id, agent_id = str(fact.turn_id), str(fact.target_id)
        self._memory.collected = Collected(run_id, agent_id)
        granted = self._services.authorise(self._session, run_id, agent_id, self.now)
        if "grant" in granted or not granted:
            result, why = ("allowed", GRANTED) if granted else ("unauthorized", "its runner is not known")
            self.rows.append(self.audit("run.start", run_id, why, result=result, resource=agent_id))
        return replace(fact, metadata={**fact.metadata, **granted})

    def audit(
        self, action: str, run_id: str | None, reason: str, *, result: str = "dropped", resource: str = ""
    ) -> AuditRow:
        session = self._memory.projection.session
        return AuditRow(
            time=self.now,
            workspace_id=session.workspace_id,
            actor=f"user:{session.user_id}",
            action=action,
            resource=resource,
            scope=session.session_id,
            result=result,
            reason=reason,
            run_id=run_id,
            session_id=session.session_id,
        )
