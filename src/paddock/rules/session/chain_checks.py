"""Invariants of members, handovers, opening and closing. Checks; never repairs."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from paddock.rules.cluster import WHY
from paddock.rules.session import messages
from paddock.rules.session.commands import StartRun
from paddock.rules.session.decision import Decision
from paddock.rules.session.facts import Event, Fact, Target
from paddock.rules.session.messages import Message
from paddock.rules.session.state import Pending, SessionState, Transaction, Turn


@dataclass(frozen=True, slots=True)
class Step:
    before: SessionState
    message: Message
    decision: Decision
    after: SessionState
    alive: frozenset[str]
    """Turns that this step may speak of: not ended before it, or admitted by it."""
    ends: tuple[tuple[str, str], ...]
    """(turn, status) of every fact that ends a turn, in order."""

    def ended(self, turn_id: str, status: str) -> bool:
        return (turn_id, status) in self.ends

    @property
    def addressed(self) -> Turn | None:
        """The live turn, when the message is about it."""
        turn = self.before.turn
        return turn if turn is not None and getattr(self.message, "turn_id", None) == turn.turn_id else None

    @property
    def transaction(self) -> Transaction | None:
        """The transaction that the message answers, as it was before."""
        return self.before.transaction(getattr(self.message, "tx_id", None))


def hands_over(fact: Fact) -> bool:
    return fact.subtype == "HANDOVER_CONTEXT"


_OPENING = frozenset({"SESSION_OPEN", "REQUEST_SESSION_OPEN", "SESSION_OPENED", "SESSION_FAILED"})


def _closed_is_closed(step: Step) -> Iterator[str]:
    """Input that slipped in is answered with a refusal; but for that, only opening goes on."""
    after = step.after
    if after.closed and (after.live_turn_ids or any(found.kind != "session_open" for found in after.transactions)):
        yield "something lives on in a closed session"
    if not step.before.closed:
        return
    if any(type(command) is StartRun for command in step.decision.commands):
        yield "a turn started in a closed session"
    if not isinstance(step.message, messages.UserInput):
        said = {fact.kind for fact in step.decision.facts if fact.subtype not in _OPENING}
        if said:
            yield f"{', '.join(sorted(said))} in a closed session"


def _closing_takes_nothing_new(step: Step) -> Iterator[str]:
    if step.before.closing and any(type(command) is StartRun for command in step.decision.commands):
        yield "a turn started while the session is closing"


def _leaving_agents_are_left_alone(step: Step) -> Iterator[str]:
    for command in step.decision.commands:
        if type(command) is StartRun and step.before.is_leaving(command.agent_id):
            yield f"{command.agent_id} is being removed and was given {command.turn_id}"


def _removed_agents_are_gone(step: Step) -> Iterator[str]:
    """Nothing goes to an agent that is not a member, and it becomes one again only on the record."""
    members = set(step.before.members)
    for fact in step.decision.facts:
        if fact.subtype == "SESSION_OPENED" and fact.event is Event.CONTROL:
            members = set(fact.payload["members"])
        elif fact.subtype == "AGENT_ADDED":
            members.add(fact.payload["agent_id"])
        elif fact.subtype == "AGENT_REMOVED_LOCAL":
            members.discard(fact.payload["agent_id"])
        elif fact.target is Target.AGENT and fact.target_id not in members:
            yield f"{fact.kind} to {fact.target_id}, who is not a member"
    if members != set(step.after.members):
        yield f"{sorted(members)} were told, {sorted(step.after.members)} are members"


def _removal_waits_for_its_turn(step: Step) -> Iterator[str]:
    gone = {fact.payload["agent_id"] for fact in step.decision.facts if fact.subtype == "AGENT_REMOVED_LOCAL"}
    turn = step.before.turn
    if turn is not None and turn.agent_id in gone and all(ended != turn.turn_id for ended, _ in step.ends):
        yield f"{turn.agent_id} left in the middle of {turn.turn_id}"


def _handover_needs_a_word(step: Step) -> Iterator[str]:
    """A confirm counts once and only while it is asked for; nobody takes over without it."""
    message = step.message
    for fact in step.decision.facts:
        known = step.before.transaction(fact.tx_id)
        if fact.subtype == "HANDOVER_CONFIRM" and (known is None or known.waiting is not Pending.CONFIRM):
            yield f"{fact.tx_id} was confirmed although nobody asked"
        if hands_over(fact):
            now = isinstance(message, messages.HandoverAnswered) and message.confirmed
            if known is None or known.kind != "handover" or (known.waiting is Pending.CONFIRM and not now):
                yield f"{fact.target_id} took over without the user's word"


def _failed_heirs_give_back(step: Step) -> Iterator[str]:
    """An agent that took over and fails before its first word does not keep the conversation."""
    before, after = step.before.fallback, step.after
    if after.fallback is not None and after.active_agent_id != after.fallback.agent_id:
        yield f"{after.fallback.agent_id} is not active and may still give back"
    turn, message = step.addressed, step.message
    if before is None or turn is None or turn.agent_id != before.agent_id or not step.ended(turn.turn_id, "failed"):
        return
    if isinstance(message, messages.RunFailed) and message.code in WHY:
        return
    back = any(
        fact.subtype == "SWITCH_AGENT" and fact.payload["from"] == before.agent_id for fact in step.decision.facts
    )
    if not back and before.by_agent_id in step.before.members and not step.before.is_leaving(before.by_agent_id):
        yield f"{before.agent_id} failed without a word and {before.by_agent_id} did not get the conversation back"


def _transactions_end_on_record(step: Step) -> Iterator[str]:
    told = {fact.tx_id for fact in step.decision.facts}
    for transaction in step.before.transactions:
        if step.after.transaction(transaction.tx_id) is None and transaction.tx_id not in told:
            yield f"{transaction.kind} {transaction.tx_id} vanished"
    known = {found.tx_id for found in step.before.transactions}
    for transaction in step.after.transactions:
        if transaction.tx_id not in known and transaction.tx_id not in told:
            yield f"{transaction.kind} {transaction.tx_id} came from nowhere"


def _answers_are_heard(step: Step) -> Iterator[str]:
    """The awaited answer continues its transaction; a timeout is an answer too."""
    transaction, message = step.transaction, step.message
    if transaction is None:
        return
    manager = (
        isinstance(message, messages.ManagerReplied | messages.ManagerTimedOut)
        and transaction.waiting is Pending.MANAGER
    )
    confirm = (
        isinstance(message, messages.ConfirmTimedOut | messages.HandoverAnswered)
        and transaction.waiting is Pending.CONFIRM
    )
    fits = not isinstance(message, messages.ManagerReplied) or _fits(transaction, message)
    if (manager or confirm) and fits and step.after.transaction(transaction.tx_id) == transaction:
        yield f"{transaction.kind} goes on waiting after {type(message).__name__}"


def _fits(transaction: Transaction, message: messages.ManagerReplied) -> bool:
    kinds = {
        "add_agent": "ADD_AGENT",
        "handover": "ADD_AGENT",
        "remove_agent": "REMOVE_AGENT",
        "session_open": "SESSION_",
        "session_close": "SESSION_",
    }
    wrong = {"session_open": "SESSION_CLOSED", "session_close": "SESSION_OPENED"}.get(transaction.kind)
    return message.answer.startswith(kinds[transaction.kind]) and message.answer != wrong


CHAIN_CHECKS: Mapping[str, Callable[[Step], Iterator[str]]] = {
    "session/closed": _closed_is_closed,
    "close/nothing-new": _closing_takes_nothing_new,
    "remove/left-alone": _leaving_agents_are_left_alone,
    "remove/gone": _removed_agents_are_gone,
    "remove/waits-for-its-turn": _removal_waits_for_its_turn,
    "handover/needs-a-word": _handover_needs_a_word,
    "handover/falls-back": _failed_heirs_give_back,
    "chain/on-record": _transactions_end_on_record,
    "chain/answers-are-heard": _answers_are_heard,
}
