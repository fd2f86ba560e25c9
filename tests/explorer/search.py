"""Breadth first through everything that can happen, until nothing new does: a broken promise is found the short way."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from time import perf_counter

from explorer.world import Bounds, Move, World, admitted, beginning, certainties, chances, message_of, perform
from paddock.rules.session.commands import Command, EndRun
from paddock.rules.session.decide import step
from paddock.rules.session.decision import Decision
from paddock.rules.session.invariants import violations
from paddock.rules.session.messages import Message
from paddock.rules.session.state import Pending, SessionState, Wait

Label = tuple[str, ...]
Step = Callable[[SessionState, Message], tuple[SessionState, Decision]]
Check = Callable[[SessionState, Message, Decision, SessionState], Sequence[str]]

_TIMER_OF = {
    Wait.INPUT_ACK: "ack",
    Wait.CANCEL_ACK: "cancel",
    Pending.MANAGER: "manager",
    Pending.CONFIRM: "confirm",
}


@dataclass(frozen=True, slots=True)
class Report:
    """What the search saw. `trace` is a shortest way to `broken`; both are empty when every promise held."""

    states: int
    transitions: int
    seconds: float
    complete: bool
    """Everything reachable was seen; False when the search was cut off."""
    ends: int
    """Places where nothing is bound to happen any more."""
    broken: tuple[str, ...] = ()
    trace: tuple[str, ...] = ()

    def line(self) -> str:
        seen = "fixpoint" if self.complete else "cut off"
        return (
            f"states={self.states} transitions={self.transitions} seconds={self.seconds:.1f} "
            f"violations={len(self.broken)} ends={self.ends} {seen}"
        )


class Explorer:
    """One search. States of the session are numbered and steps remembered: `step` is pure, so once is enough."""

    def __init__(self, bounds: Bounds, step: Step = step, check: Check = violations) -> None:
        self._bounds = bounds
        self._step = step
        self._check = check
        self._states: list[SessionState] = [SessionState()]
        self._numbers: dict[SessionState, int] = {self._states[0]: 0}
        self._steps: dict[tuple[int, tuple[str, ...]], tuple[int, Sequence[Command], tuple[str, ...]]] = {}
        self._waits: dict[int, frozenset[tuple[str, str]]] = {}
        self._came: dict[World, tuple[World, Label] | None] = {}

    def explore(self, max_transitions: int | None = None, max_states: int | None = None) -> Report:
        """Go on to the fixpoint, the first broken promise, or a limit."""
        started = perf_counter()
        first = beginning(self._bounds)
        self._came[first] = None
        waiting = deque([first])
        transitions = ends = 0
        while waiting and not _enough(transitions, max_transitions) and not _enough(len(self._came), max_states):
            world = waiting.popleft()
            if self.is_end(world):
                ends += 1
                if broken := tuple(self._unfinished(world)):
                    return self._report(started, transitions, ends, broken, self._trace(world))
            for label, after, broken in self.successors(world):
                transitions += 1
                if broken:
                    return self._report(started, transitions, ends, broken, self._trace(world, label))
                if after not in self._came:
                    self._came[after] = (world, label)
                    waiting.append(after)
        return self._report(started, transitions, ends, complete=not waiting)

    def is_end(self, world: World) -> bool:
        """Nothing is bound to happen any more."""
        return next(certainties(world, self._bounds), None) is None

    def successors(self, world: World) -> Iterator[tuple[Label, World, tuple[str, ...]]]:
        """Every move from here, where it leads, and which promises it breaks."""
        for move in chain(certainties(world, self._bounds), chances(world, self._bounds)):
            yield move.label, *self._follow(self._if_late(world, move))

    def _if_late(self, world: World, move: Move) -> Move:
        """A timer nobody waits for any more: it may still ring, but not all of them do."""
        if move.label[0] != "timer" or move.label[1:] in self._awaited(world):
            return move
        left = move.world.left
        return move._replace(world=move.world._replace(left=left._replace(lates=left.lates - 1)))

    def _follow(self, move: Move) -> tuple[World, tuple[str, ...]]:
        if move.heard is None:
            return move.world, ()
        number, commands, broken = self._hear(move.world.session, move.heard)
        after = perform(move.world._replace(session=number), commands, self._bounds)
        if move.world.ended and (twice := tuple(_ended_again(move.world, commands))):
            broken += twice
        broken = (*broken, *self._without_timer(after))
        if not after.left.lates and after.timers:
            after = after._replace(timers=after.timers & self._awaited(after))
        return after, broken

    def _awaited(self, world: World) -> frozenset[tuple[str, str]]:
        """The timers that somebody waits for."""
        found = self._waits.get(world.session)
        if found is None:
            found = self._waits[world.session] = _timers_of(self._states[world.session])
        return found

    def _hear(self, session: int, heard: tuple[str, ...]) -> tuple[int, Sequence[Command], tuple[str, ...]]:
        known = self._steps.get((session, heard))
        if known is None:
            before, message = self._states[session], message_of(heard, self._bounds)
            after, decision = self._step(before, message)
            broken = tuple(self._check(before, message, decision, after))
            known = self._steps[session, heard] = (self._number(after), decision.commands, broken)
        return known

    def _number(self, state: SessionState) -> int:
        number = self._numbers.setdefault(state, len(self._states))
        if number == len(self._states):
            self._states.append(state)
        return number

    def _without_timer(self, world: World) -> Iterator[str]:
        """Looked at in the world, not in the step: the timer must still be there as long as the wait is."""
        for timer in self._awaited(world) - world.timers:
            if timer[0] not in {"deadline", "answer"}:
                yield f"wait/has-a-timer: {timer[1]} waits and no {timer[0]} timer runs"

    def _unfinished(self, world: World) -> Iterator[str]:
        """Nothing is bound to happen any more: then every turn and every transaction must have come to its end."""
        state = self._states[world.session]
        for turn_id in state.live_turn_ids:
            yield f"turn/always-ends: {turn_id} never ends"
        for found in state.transactions:
            yield f"chain/always-ends: {found.kind} {found.tx_id} never ends"
        for turn_id in admitted(world, self._bounds):
            if turn_id not in world.ended and turn_id not in state.live_turn_ids:
                yield f"turn/always-ends: {turn_id} never ends"

    def _report(
        self,
        started: float,
        transitions: int,
        ends: int,
        broken: tuple[str, ...] = (),
        trace: tuple[str, ...] = (),
        *,
        complete: bool = False,
    ) -> Report:
        return Report(len(self._came), transitions, perf_counter() - started, complete, ends, broken, trace)

    def _trace(self, world: World, *last: Label) -> tuple[str, ...]:
        labels = list(last)
        came = self._came[world]
        while came is not None:
            world, label = came
            labels.append(label)
            came = self._came[world]
        return tuple(" ".join(label).rstrip() for label in reversed(labels))


def _enough(count: int, limit: int | None) -> bool:
    return limit is not None and count >= limit


def _timers_of(state: SessionState) -> frozenset[tuple[str, str]]:
    turn = state.turn
    waits = {(_TIMER_OF[wait], turn.turn_id) for wait in turn.waiting} if turn else set()
    deadlines = {("deadline", turn.turn_id)} if turn else set()
    for found in state.transactions:
        if found.waiting in _TIMER_OF:
            waits.add((_TIMER_OF[found.waiting], found.tx_id))
        if found.waiting is Pending.CONFIRM:
            waits.add(("answer", found.tx_id))
    return frozenset(waits | deadlines)


def _ended_again(world: World, commands: Sequence[Command]) -> Iterator[str]:
    for command in commands:
        if type(command) is EndRun and command.turn_id in world.ended:
            yield f"turn/ends-once: {command.turn_id} ended again"


def explore(bounds: Bounds, step: Step = step, max_transitions: int | None = None) -> Report:
    return Explorer(bounds, step).explore(max_transitions)
