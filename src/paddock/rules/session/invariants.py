"""What must be true of every step, said apart from the code that makes it true. Checks; never repairs.

`violations` looks at one step from outside: the state before, the message, what was decided, the state after. The
explorer and the tests fail on what it finds, production counts it. Each check carries the name of its line in
docs/spec/session.md.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from paddock.rules.session.commands import (
    AskManager,
    AwaitAck,
    AwaitCancelAck,
    AwaitConfirm,
    AwaitManager,
    CancelRun,
    EndRun,
    ForceStop,
    StartRun,
)
from paddock.rules.session.decision import Decision
from paddock.rules.session.facts import VOCABULARY, Event, Fact, Target
from paddock.rules.session.messages import (
    AckTimedOut,
    CancelAcknowledged,
    CancelRequested,
    CancelTimedOut,
    ConfirmTimedOut,
    HandoverAnswered,
    ManagerReplied,
    ManagerTimedOut,
    Message,
    OutputReceived,
    RunFailed,
    UserInput,
)
from paddock.rules.session.state import Pending, SessionState, Transaction, Turn, TurnStatus, Wait


@dataclass(frozen=True, slots=True)
class _Step:
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


def violations(before: SessionState, message: Message, decision: Decision, after: SessionState) -> list[str]:
    """Every broken promise of this step, as `line: what happened`; empty when all is well."""
    admitted = (fact.turn_id for fact in decision.facts if fact.event is Event.USER_INPUT or _hands_over(fact))
    alive = frozenset((*before.live_turn_ids, *filter(None, admitted)))
    ends = tuple((fact.turn_id or "", ending) for fact in decision.facts if (ending := fact.ending))
    step = _Step(before, message, decision, after, alive, ends)
    return [f"{line}: {broken}" for line, check in _CHECKS.items() for broken in check(step)]


def _hands_over(fact: Fact) -> bool:
    return fact.subtype == "HANDOVER_CONTEXT"


# --- the state --------------------------------------------------------------------------------------------------------


def _speaker_owns_the_turn(step: _Step) -> Iterator[str]:
    speaker, turn = step.after.speaking_agent_id, step.after.turn
    if speaker is not None and (turn is None or turn.agent_id != speaker or turn.status is not TurnStatus.RUNNING):
        yield f"{speaker} speaks without a running turn of its own"


def _agents_are_members(step: _Step) -> Iterator[str]:
    after = step.after
    for agent_id in (after.active_agent_id, after.turn.agent_id if after.turn else None):
        if agent_id is not None and agent_id not in after.members:
            yield f"{agent_id} is not a member"


def _line_stands_behind_a_turn(step: _Step) -> Iterator[str]:
    if step.after.queue and step.after.turn is None:
        yield "turns wait although none is live"
    if len(set(step.after.live_turn_ids)) != len(step.after.live_turn_ids):
        yield "a turn is there twice"


def _waits_have_timers(step: _Step) -> Iterator[str]:
    yield from _turn_waits(step)
    for transaction in step.after.transactions:
        yield from _transaction_waits(step, transaction)


def _transaction_waits(step: _Step, transaction: Transaction) -> Iterator[str]:
    tx_id, waiting = transaction.tx_id, transaction.waiting
    if waiting is Pending.TURN_END:
        others = transaction.kind == "session_close" and len(step.after.transactions) > 1
        if step.after.turn is None and not others:
            yield f"{transaction.kind} waits for a turn and none is live"
        return
    known = step.before.transaction(tx_id)
    if known is not None and known.waiting is waiting:
        return
    armed = {type(command) for command in step.decision.commands if getattr(command, "tx_id", None) == tx_id}
    missing = {AskManager, AwaitManager} if waiting is Pending.MANAGER else {AwaitConfirm}
    if missing - armed:
        yield f"{transaction.kind} waits for {waiting} and nobody was asked, or without a timer"


def _turn_waits(step: _Step) -> Iterator[str]:
    turn, before = step.after.turn, step.before.turn
    if turn is None:
        return
    if turn.status is TurnStatus.ROUTING and not turn.waiting:
        yield f"{turn.turn_id} is on its way and nothing is waited for"
    known = before.waiting if before is not None and before.turn_id == turn.turn_id else ()
    armed = {type(command) for command in step.decision.commands if getattr(command, "turn_id", "") == turn.turn_id}
    for wait in turn.waiting:
        if wait not in known and _TIMER[wait] not in armed:
            yield f"{turn.turn_id} waits for {wait} without a timer"


_TIMER = {Wait.INPUT_ACK: AwaitAck, Wait.CANCEL_ACK: AwaitCancelAck}


# --- the end of turns -------------------------------------------------------------------------------------------------


def _turns_end_once(step: _Step) -> Iterator[str]:
    left = set(step.after.live_turn_ids)
    for turn_id in step.alive:
        count = sum(1 for ended, _ in step.ends if ended == turn_id)
        if count != (turn_id not in left):
            yield f"{turn_id} ended {count} times" if turn_id not in left else f"{turn_id} lives on after its end"
    for turn_id, status in step.ends:
        if turn_id not in step.alive:
            yield f"{turn_id} was not live and ended {status}"
    if left - step.alive:
        yield f"{', '.join(sorted(left - step.alive))} came from nowhere"


def _ends_are_told_to_the_host(step: _Step) -> Iterator[str]:
    told = tuple((command.turn_id, command.status) for command in step.decision.commands if type(command) is EndRun)
    if told != step.ends:
        yield f"recorded {step.ends}, told the host {told}"


def _ended_turns_are_silent(step: _Step) -> Iterator[str]:
    over: set[str] = set()
    for fact in step.decision.facts:
        if fact.turn_id is None:
            continue
        if fact.turn_id not in step.alive or (fact.turn_id in over and fact.target is not Target.AGENT):
            yield f"{fact.kind} of {fact.turn_id} after its end"
        if fact.ending:
            over.add(fact.turn_id)


def _input_is_never_lost(step: _Step) -> Iterator[str]:
    message = step.message
    if isinstance(message, UserInput) and message.turn_id not in step.alive:
        yield f"{message.turn_id} is not on record"


def _one_turn_at_a_time(step: _Step) -> Iterator[str]:
    turn, before = step.after.turn, step.before.turn
    new = turn if turn is not None and (before is None or before.turn_id != turn.turn_id) else None
    started = [command for command in step.decision.commands if type(command) is StartRun]
    if started != ([StartRun(new.turn_id, new.agent_id)] if new else []):
        yield f"{new.turn_id if new else 'nothing'} went live, {started} was started"
    if new and before and all(turn_id != before.turn_id for turn_id, _ in step.ends):
        yield f"{new.turn_id} started while {before.turn_id} was live"


def _line_keeps_its_order(step: _Step) -> Iterator[str]:
    queue = step.before.queue
    if not queue:
        return
    turn, ended = step.after.turn, {turn_id for turn_id, _ in step.ends}
    waiting = [queued.turn_id for queued in queue if queued.turn_id not in ended]
    if turn is not None and turn.turn_id in waiting[1:]:
        yield f"{turn.turn_id} overtook {waiting[0]}"
    was = [queued.turn_id for queued in queue]
    left = [queued.turn_id for queued in step.after.queue if queued.turn_id in was]
    if left != [turn_id for turn_id in was if turn_id in left]:
        yield f"{was} became {left}"


# --- what must follow from a message ----------------------------------------------------------------------------------


def _cancel_means_the_turn(step: _Step) -> Iterator[str]:
    message, turn = step.message, step.before.turn
    if not isinstance(message, CancelRequested) or step.before.closed:
        return
    named = message.turn_id or (turn.turn_id if turn else None)
    if named is None or named not in step.before.live_turn_ids or any(turn_id == named for turn_id, _ in step.ends):
        return
    after = step.after.turn
    if after is None or after.turn_id != named or not after.is_being_cancelled:
        yield f"the cancel of {named} was dropped"


def _cancel_comes_to_an_end(step: _Step) -> Iterator[str]:
    turn, message = step.addressed, step.message
    if turn is None or not turn.is_being_cancelled:
        return
    if isinstance(message, CancelAcknowledged | CancelTimedOut | RunFailed) and not step.ended(
        turn.turn_id, "cancelled"
    ):
        yield f"{turn.turn_id} was asked to stop and goes on after {type(message).__name__}"
    stop = ForceStop(turn.turn_id, turn.agent_id)
    if isinstance(message, CancelTimedOut) and stop not in step.decision.commands:
        yield f"{turn.turn_id} did not answer and was not cut off"


def _route_timeout_ends_and_cancels(step: _Step) -> Iterator[str]:
    turn = step.addressed
    if turn is None or not isinstance(step.message, AckTimedOut) or Wait.INPUT_ACK not in turn.waiting:
        return
    if not step.ended(turn.turn_id, "failed"):
        yield f"{turn.turn_id} goes on although nobody took it"
    if CancelRun(turn.turn_id, turn.agent_id, "route_timeout") not in step.decision.commands:
        yield f"{turn.turn_id} timed out and its agent was not told"


def _failure_ends_the_turn(step: _Step) -> Iterator[str]:
    message = step.message
    if isinstance(message, RunFailed) and message.turn_id in step.after.live_turn_ids:
        yield f"{message.turn_id} goes on without its run"


def _final_ends_the_turn(step: _Step) -> Iterator[str]:
    turn, message = step.addressed, step.message
    if turn is None or not isinstance(message, OutputReceived) or message.kind != "FINAL":
        return
    if message.agent_id == turn.agent_id and not step.ended(turn.turn_id, "completed"):
        yield f"the final word of {turn.turn_id} did not complete it"


def _output_is_forwarded_unchanged(step: _Step) -> Iterator[str]:
    """Exactly what the live turn's own agent said, and nothing else, reaches the front end as output."""
    message, turn = step.message, step.addressed
    said = [fact for fact in step.decision.facts if fact.event is Event.AGENT_OUTPUT]
    heard = isinstance(message, OutputReceived) and turn is not None and turn.agent_id == message.agent_id
    if len(said) != heard:
        yield f"{len(said)} outputs recorded, {int(heard)} due"
    if said and isinstance(message, OutputReceived):
        kept = said[0].payload is message.payload and said[0].metadata is message.metadata
        if not kept or (said[0].subtype, said[0].sender) != (message.kind, f"agent:{message.agent_id}"):
            yield f"the output of {message.turn_id} was changed on its way"


def _words_are_known(step: _Step) -> Iterator[str]:
    for fact in step.decision.facts:
        if fact.subtype not in VOCABULARY[fact.event]:
            yield f"{fact.kind} is not a word of the session"


# --- the session and its members --------------------------------------------------------------------------------------

_OPENING = frozenset({"SESSION_OPEN", "REQUEST_SESSION_OPEN", "SESSION_OPENED", "SESSION_FAILED"})


def _closed_is_closed(step: _Step) -> Iterator[str]:
    """Input that slipped in is answered with a refusal; but for that, only opening goes on."""
    after = step.after
    if after.closed and (after.live_turn_ids or any(found.kind != "session_open" for found in after.transactions)):
        yield "something lives on in a closed session"
    if not step.before.closed:
        return
    if any(type(command) is StartRun for command in step.decision.commands):
        yield "a turn started in a closed session"
    if not isinstance(step.message, UserInput):
        said = {fact.kind for fact in step.decision.facts if fact.subtype not in _OPENING}
        if said:
            yield f"{', '.join(sorted(said))} in a closed session"


def _closing_takes_nothing_new(step: _Step) -> Iterator[str]:
    if step.before.closing and any(type(command) is StartRun for command in step.decision.commands):
        yield "a turn started while the session is closing"


def _leaving_agents_are_left_alone(step: _Step) -> Iterator[str]:
    for command in step.decision.commands:
        if type(command) is StartRun and step.before.is_leaving(command.agent_id):
            yield f"{command.agent_id} is being removed and was given {command.turn_id}"


def _removed_agents_are_gone(step: _Step) -> Iterator[str]:
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


def _removal_waits_for_its_turn(step: _Step) -> Iterator[str]:
    gone = {fact.payload["agent_id"] for fact in step.decision.facts if fact.subtype == "AGENT_REMOVED_LOCAL"}
    turn = step.before.turn
    if turn is not None and turn.agent_id in gone and all(ended != turn.turn_id for ended, _ in step.ends):
        yield f"{turn.agent_id} left in the middle of {turn.turn_id}"


def _handover_needs_a_word(step: _Step) -> Iterator[str]:
    """A confirm counts once and only while it is asked for; nobody takes over without it."""
    message = step.message
    for fact in step.decision.facts:
        known = step.before.transaction(fact.tx_id)
        if fact.subtype == "HANDOVER_CONFIRM" and (known is None or known.waiting is not Pending.CONFIRM):
            yield f"{fact.tx_id} was confirmed although nobody asked"
        if _hands_over(fact):
            now = isinstance(message, HandoverAnswered) and message.confirmed
            if known is None or known.kind != "handover" or (known.waiting is Pending.CONFIRM and not now):
                yield f"{fact.target_id} took over without the user's word"


def _transactions_end_on_record(step: _Step) -> Iterator[str]:
    told = {fact.tx_id for fact in step.decision.facts}
    for transaction in step.before.transactions:
        if step.after.transaction(transaction.tx_id) is None and transaction.tx_id not in told:
            yield f"{transaction.kind} {transaction.tx_id} vanished"
    known = {found.tx_id for found in step.before.transactions}
    for transaction in step.after.transactions:
        if transaction.tx_id not in known and transaction.tx_id not in told:
            yield f"{transaction.kind} {transaction.tx_id} came from nowhere"


def _answers_are_heard(step: _Step) -> Iterator[str]:
    """What a transaction waited for takes it on; a timeout is an answer too."""
    transaction, message = step.transaction, step.message
    if transaction is None:
        return
    manager = isinstance(message, ManagerReplied | ManagerTimedOut) and transaction.waiting is Pending.MANAGER
    confirm = isinstance(message, ConfirmTimedOut | HandoverAnswered) and transaction.waiting is Pending.CONFIRM
    fits = not isinstance(message, ManagerReplied) or _fits(transaction, message)
    if (manager or confirm) and fits and step.after.transaction(transaction.tx_id) == transaction:
        yield f"{transaction.kind} goes on waiting after {type(message).__name__}"


def _fits(transaction: Transaction, message: ManagerReplied) -> bool:
    kinds = {
        "add_agent": "ADD_AGENT",
        "handover": "ADD_AGENT",
        "remove_agent": "REMOVE_AGENT",
        "session_open": "SESSION_",
        "session_close": "SESSION_",
    }
    wrong = {"session_open": "SESSION_CLOSED", "session_close": "SESSION_OPENED"}.get(transaction.kind)
    return message.answer.startswith(kinds[transaction.kind]) and message.answer != wrong


_CHECKS: Mapping[str, Callable[[_Step], Iterator[str]]] = {
    "turn/one-speaker": _speaker_owns_the_turn,
    "route/active-is-a-member": _agents_are_members,
    "queue/behind-a-live-turn": _line_stands_behind_a_turn,
    "wait/has-a-timer": _waits_have_timers,
    "turn/ends-once": _turns_end_once,
    "turn/end-is-told-once": _ends_are_told_to_the_host,
    "turn/silent-after-its-end": _ended_turns_are_silent,
    "input/never-lost": _input_is_never_lost,
    "turn/one-at-a-time": _one_turn_at_a_time,
    "queue/admission-order": _line_keeps_its_order,
    "cancel/means-the-turn": _cancel_means_the_turn,
    "cancel/comes-to-an-end": _cancel_comes_to_an_end,
    "ack/timeout-fails-and-cancels": _route_timeout_ends_and_cancels,
    "failure/ends-the-turn": _failure_ends_the_turn,
    "output/final-ends-the-turn": _final_ends_the_turn,
    "output/unchanged": _output_is_forwarded_unchanged,
    "session/known-words": _words_are_known,
    "session/closed": _closed_is_closed,
    "close/nothing-new": _closing_takes_nothing_new,
    "remove/left-alone": _leaving_agents_are_left_alone,
    "remove/gone": _removed_agents_are_gone,
    "remove/waits-for-its-turn": _removal_waits_for_its_turn,
    "handover/needs-a-word": _handover_needs_a_word,
    "chain/on-record": _transactions_end_on_record,
    "chain/answers-are-heard": _answers_are_heard,
}
