"""Invariants of every step, stated apart from the code that keeps them. Checks; never repairs.

`violations` looks at one step from outside: the state before, the message, what was decided, the state after. The
explorer and the tests fail on what it finds, production counts it. Each check carries the name of its line in
docs/spec/session.md.
"""

from collections.abc import Callable, Iterator, Mapping

from paddock.rules.session import commands, messages
from paddock.rules.session.chain_checks import CHAIN_CHECKS, Step, hands_over
from paddock.rules.session.decision import Decision
from paddock.rules.session.facts import VOCABULARY, Event, Target
from paddock.rules.session.messages import Message
from paddock.rules.session.state import Pending, SessionState, Transaction, TurnStatus, Wait


def violations(before: SessionState, message: Message, decision: Decision, after: SessionState) -> list[str]:
    """Every broken promise of this step, as `line: what happened`; empty when all is well."""
    admitted = (fact.turn_id for fact in decision.facts if fact.event is Event.USER_INPUT or hands_over(fact))
    alive = frozenset((*before.live_turn_ids, *filter(None, admitted)))
    ends = tuple((fact.turn_id or "", ending) for fact in decision.facts if (ending := fact.ending))
    step = Step(before, message, decision, after, alive, ends)
    return [f"{line}: {broken}" for line, check in CHECKS.items() for broken in check(step)]


def _speaker_owns_the_turn(step: Step) -> Iterator[str]:
    speaker, turn = step.after.speaking_agent_id, step.after.turn
    if speaker is not None and (turn is None or turn.agent_id != speaker or turn.status is not TurnStatus.RUNNING):
        yield f"{speaker} speaks without a running turn of its own"


def _agents_are_members(step: Step) -> Iterator[str]:
    after = step.after
    for agent_id in (after.active_agent_id, after.turn.agent_id if after.turn else None):
        if agent_id is not None and agent_id not in after.members:
            yield f"{agent_id} is not a member"


def _line_stands_behind_a_turn(step: Step) -> Iterator[str]:
    if step.after.queue and step.after.turn is None and not _stays_held(step):
        yield "turns wait although none is live"
    if len(set(step.after.live_turn_ids)) != len(step.after.live_turn_ids):
        yield "a turn is there twice"


def _stays_held(step: Step) -> bool:
    goes_on = isinstance(step.message, messages.LineResumed | messages.UserInput)
    return step.after.held or (step.before.left_waiting and not goes_on)


def _waits_have_timers(step: Step) -> Iterator[str]:
    yield from _turn_waits(step)
    for transaction in step.after.transactions:
        yield from _transaction_waits(step, transaction)


def _transaction_waits(step: Step, transaction: Transaction) -> Iterator[str]:
    tx_id, waiting = transaction.tx_id, transaction.waiting
    if waiting is Pending.TURN_END:
        others = transaction.kind == "session_close" and len(step.after.transactions) > 1
        if step.after.turn is None and not others and not _stays_held(step):
            yield f"{transaction.kind} waits for a turn and none is live"
        return
    known = step.before.transaction(tx_id)
    if known is not None and known.waiting is waiting:
        return
    armed = {type(command) for command in step.decision.commands if getattr(command, "tx_id", None) == tx_id}
    missing = {commands.AskManager, commands.AwaitManager} if waiting is Pending.MANAGER else {commands.AwaitConfirm}
    if missing - armed:
        yield f"{transaction.kind} waits for {waiting} and nobody was asked, or without a timer"


def _turn_waits(step: Step) -> Iterator[str]:
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


_TIMER = {Wait.INPUT_ACK: commands.AwaitAck, Wait.CANCEL_ACK: commands.AwaitCancelAck}


# --- the end of turns -------------------------------------------------------------------------------------------------


def _turns_end_once(step: Step) -> Iterator[str]:
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


def _ends_are_told_to_the_host(step: Step) -> Iterator[str]:
    told = tuple(
        (command.turn_id, command.status) for command in step.decision.commands if type(command) is commands.EndRun
    )
    if told != step.ends:
        yield f"recorded {step.ends}, told the host {told}"


def _ended_turns_are_silent(step: Step) -> Iterator[str]:
    over: set[str] = set()
    for fact in step.decision.facts:
        if fact.turn_id is None:
            continue
        if fact.turn_id not in step.alive or (fact.turn_id in over and fact.target is not Target.AGENT):
            yield f"{fact.kind} of {fact.turn_id} after its end"
        if fact.ending:
            over.add(fact.turn_id)


def _input_is_never_lost(step: Step) -> Iterator[str]:
    message = step.message
    if isinstance(message, messages.UserInput) and message.turn_id not in step.alive:
        yield f"{message.turn_id} is not on record"


def _one_turn_at_a_time(step: Step) -> Iterator[str]:
    turn, before = step.after.turn, step.before.turn
    new = turn if turn is not None and (before is None or before.turn_id != turn.turn_id) else None
    started = [command for command in step.decision.commands if type(command) is commands.StartRun]
    if started != ([commands.StartRun(new.turn_id, new.agent_id)] if new else []):
        yield f"{new.turn_id if new else 'nothing'} went live, {started} was started"
    if new and before and all(turn_id != before.turn_id for turn_id, _ in step.ends):
        yield f"{new.turn_id} started while {before.turn_id} was live"


def _line_keeps_its_order(step: Step) -> Iterator[str]:
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


def _cancel_means_the_turn(step: Step) -> Iterator[str]:
    message, turn = step.message, step.before.turn
    if not isinstance(message, messages.CancelRequested) or step.before.closed:
        return
    named = message.turn_id or (turn.turn_id if turn else None)
    if named is None or named not in step.before.live_turn_ids or any(turn_id == named for turn_id, _ in step.ends):
        return
    after = step.after.turn
    if after is None or after.turn_id != named or not after.is_being_cancelled:
        yield f"the cancel of {named} was dropped"


def _cancel_comes_to_an_end(step: Step) -> Iterator[str]:
    turn, message = step.addressed, step.message
    if turn is None or not turn.is_being_cancelled:
        return
    if isinstance(
        message, messages.CancelAcknowledged | messages.CancelTimedOut | messages.RunFailed
    ) and not step.ended(turn.turn_id, "cancelled"):
        yield f"{turn.turn_id} was asked to stop and goes on after {type(message).__name__}"
    stop = commands.ForceStop(turn.turn_id, turn.agent_id)
    if isinstance(message, messages.CancelTimedOut) and stop not in step.decision.commands:
        yield f"{turn.turn_id} did not answer and was not cut off"


def _route_timeout_ends_and_cancels(step: Step) -> Iterator[str]:
    turn = step.addressed
    if turn is None or not isinstance(step.message, messages.AckTimedOut) or Wait.INPUT_ACK not in turn.waiting:
        return
    if not step.ended(turn.turn_id, "failed"):
        yield f"{turn.turn_id} goes on although nobody took it"
    if commands.CancelRun(turn.turn_id, turn.agent_id, "route_timeout") not in step.decision.commands:
        yield f"{turn.turn_id} timed out and its agent was not told"


def _failure_ends_the_turn(step: Step) -> Iterator[str]:
    message = step.message
    if isinstance(message, messages.RunFailed) and message.turn_id in step.after.live_turn_ids:
        yield f"{message.turn_id} goes on without its run"


def _final_ends_the_turn(step: Step) -> Iterator[str]:
    turn, message = step.addressed, step.message
    if turn is None or not isinstance(message, messages.OutputReceived) or message.kind != "FINAL":
        return
    if message.agent_id == turn.agent_id and not step.ended(turn.turn_id, "completed"):
        yield f"the final word of {turn.turn_id} did not complete it"


def _output_is_forwarded_unchanged(step: Step) -> Iterator[str]:
    """Exactly what the live turn's own agent said, and nothing else, reaches the front end as output."""
    message, turn = step.message, step.addressed
    said = [fact for fact in step.decision.facts if fact.event is Event.AGENT_OUTPUT]
    heard = isinstance(message, messages.OutputReceived) and turn is not None and turn.agent_id == message.agent_id
    if len(said) != heard:
        yield f"{len(said)} outputs recorded, {int(heard)} due"
    if said and isinstance(message, messages.OutputReceived):
        kept = said[0].payload is message.payload and said[0].metadata is message.metadata
        if not kept or (said[0].subtype, said[0].sender) != (message.kind, f"agent:{message.agent_id}"):
            yield f"the output of {message.turn_id} was changed on its way"


def _words_are_known(step: Step) -> Iterator[str]:
    for fact in step.decision.facts:
        if fact.subtype not in VOCABULARY[fact.event]:
            yield f"{fact.kind} is not a word of the session"


CHECKS: Mapping[str, Callable[[Step], Iterator[str]]] = {
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
    **CHAIN_CHECKS,
}
