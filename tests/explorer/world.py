"""A small world around one session: users who speak and cancel, agents who may do anything, timers that always ring.

A move takes something out of the world: an input or a wish not yet said, a letter under way, a word not yet spoken, a
chance to crash. So the world always runs down, and where nothing is bound to happen any more, every path through it has
ended.

Agents here are worse than real ones: they acknowledge late or never, speak before they acknowledge, go on after being
told to stop, fall silent, and talk in turns of others; a word may be heard again at any later time. What an agent says
is heard at once: a word that is long under way is the same to the session as an agent that is slow to say it, and a
word that is lost the same as one never said. What the session sends keeps its order and may take any time. The session
manager does what it is asked, fails at it, or its answer is lost; it too may be heard twice.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple, TypeVar

from paddock.rules.errors import RunnersOwn
from paddock.rules.session.commands import (
    AskManager,
    AwaitAck,
    AwaitCancelAck,
    AwaitConfirm,
    AwaitManager,
    CancelRun,
    Command,
    EndRun,
    ForceStop,
    OfferSteering,
    StartRun,
)
from paddock.rules.session.facts import ManagerAnswer
from paddock.rules.session.messages import (
    AckTimedOut,
    Agents,
    CancelAcknowledged,
    CancelRequested,
    CancelTimedOut,
    CloseRequested,
    ConfirmTimedOut,
    HandoverAnswered,
    HandoverRequested,
    InputAcknowledged,
    InviteRequested,
    ManagerReplied,
    ManagerTimedOut,
    Message,
    OpenRequested,
    OutputReceived,
    RemoveRequested,
    RunFailed,
    SteeringTaken,
    SwitchRequested,
    UserInput,
)
from paddock.rules.values import Value

_T = TypeVar("_T")

NOBODY = "nobody"
"""An agent that is asked for and does not exist."""


class Bounds(Value, frozen=True):
    """How much of everything there is. `while_busy` has one policy per agent, the last one for all further agents."""

    agents: int = 2
    inputs: int = 2
    cancels: int = 1
    crashes: int = 1
    repeats: int = 1
    lies: int = 1
    lates: int = 1
    """How many timers ring although nobody waits any more: a host stops most of them, but not always in time."""
    chunks: int = 1
    removes: int = 1
    handovers: int = 1
    closes: int = 1
    invites: int = 0
    switches: int = 0
    opens: int = 0
    max_queue: int = 2
    while_busy: tuple[str, ...] = ("queue", "interrupt")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"a{number}" for number in range(1, self.agents + 1))

    def configured(self) -> Agents:
        policies = {name: self.while_busy[min(i, len(self.while_busy) - 1)] for i, name in enumerate(self.names)}
        return Agents("a1", policies, self.max_queue)


class Left(NamedTuple):
    """What may still happen."""

    inputs: int
    cancels: int
    crashes: int
    repeats: int
    lies: int
    lates: int
    removes: int
    handovers: int
    closes: int
    invites: int
    switches: int
    opens: int


class Run(NamedTuple):
    """A run at its agent, which knows nothing of what the session thinks of it."""

    turn_id: str
    acknowledged: bool
    chunks: int
    silent: bool


Heard = tuple[str, ...]
"""What the session hears, in short: `message_of` makes a message of it."""


class World(NamedTuple):
    """Everything outside the session; `session` is the number of its state. Per-agent things are in agent order."""

    session: int
    cancels: tuple[tuple[str, ...], ...]
    """Turns that an agent is told to stop, on their way to it."""
    runs: tuple[tuple[Run, ...], ...]
    echoes: frozenset[Heard]
    """Words of agents that will be heard again."""
    timers: frozenset[tuple[str, str]]
    left: Left
    ended: frozenset[str]
    asked: tuple[tuple[str, str], ...] = ()
    """(tx_id, request) that the session manager has not answered."""
    offered: tuple[tuple[str, str, str], ...] = ()
    """(input, live turn, agent): input that the runner of the live turn may take in."""


class Move(NamedTuple):
    """One thing that may happen: its name, the world without it, and what the session hears of it, if anything."""

    label: tuple[str, ...]
    world: World
    heard: Heard | None = None


def beginning(bounds: Bounds) -> World:
    left = Left(*(getattr(bounds, name) for name in Left._fields))
    nothing: tuple[tuple[()], ...] = ((),) * bounds.agents
    return World(0, nothing, nothing, frozenset(), frozenset(), left, frozenset())


def admitted(world: World, bounds: Bounds) -> tuple[str, ...]:
    return tuple(f"t{number}" for number in range(1, bounds.inputs - world.left.inputs + 1))


# --- what may happen or not -------------------------------------------------------------------------------------------


def chances(world: World, bounds: Bounds) -> Iterator[Move]:
    yield from _user_speaks(world, bounds)
    yield from _user_cancels(world, bounds)
    yield from _user_wishes(world, bounds)
    yield from _user_answers(world)
    for agent in range(bounds.agents):
        yield from _crashes(world, agent)
        yield from _lies(world, agent, bounds)


def _user_speaks(world: World, bounds: Bounds) -> Iterator[Move]:
    left = world.left
    if left.inputs:
        after = world._replace(left=left._replace(inputs=left.inputs - 1))
        turn_id = f"t{len(admitted(world, bounds)) + 1}"
        for asked in ("", *bounds.names, NOBODY):
            yield Move(("user speaks", turn_id, asked), after, ("input", turn_id, asked))


def _user_cancels(world: World, bounds: Bounds) -> Iterator[Move]:
    left = world.left
    if left.cancels:
        after = world._replace(left=left._replace(cancels=left.cancels - 1))
        for turn_id in ("", *admitted(world, bounds)):
            yield Move(("user cancels", turn_id), after, ("cancel", turn_id))


def _user_wishes(world: World, bounds: Bounds) -> Iterator[Move]:
    left = world.left
    for wish, count in (("remove", left.removes), ("invite", left.invites), ("switch", left.switches)):
        if count:
            after = world._replace(left=left._replace(**{wish + ("s" if wish != "switch" else "es"): count - 1}))
            for name in bounds.names:
                yield Move((f"user wants to {wish}", name), after, (wish, name, f"{wish[0]}{count}"))
    for wish, count in (("close", left.closes), ("open", left.opens)):
        if count:
            after = world._replace(left=left._replace(**{f"{wish}s": count - 1}))
            yield Move((f"user wants to {wish}",), after, (wish, f"{wish[0]}{count}"))


def _user_answers(world: World) -> Iterator[Move]:
    """Only once while the prompt is there; `(to be heard again)` makes it twice."""
    for timer in sorted(world.timers):
        if timer[0] == "confirm" and ("answer", timer[1]) in world.timers:
            after = world._replace(timers=world.timers - {("answer", timer[1])})
            for word in ("confirms", "rejects"):
                move = Move(("user", word, timer[1]), after, ("answer", word, timer[1]))
                yield move
                if world.left.repeats:
                    yield _twice(move)


def _crashes(world: World, agent: int) -> Iterator[Move]:
    """The process is lost, and the session hears so for each run in it: here for the first, later for the others."""
    left, runs, name = world.left, world.runs[agent], f"a{agent + 1}"
    if left.crashes and runs:
        lost = tuple(("from", name, "crashed", run.turn_id) for run in runs)
        after = world._replace(
            left=left._replace(crashes=left.crashes - 1),
            runs=_put(world.runs, agent, ()),
            cancels=_put(world.cancels, agent, ()),
            echoes=world.echoes.union(lost[1:]),
        )
        yield Move((name, "crashes"), after, lost[0])


def _lies(world: World, agent: int, bounds: Bounds) -> Iterator[Move]:
    left, name = world.left, f"a{agent + 1}"
    if left.lies:
        here = {run.turn_id for run in world.runs[agent]}
        after = world._replace(left=left._replace(lies=left.lies - 1))
        for turn_id in admitted(world, bounds):
            if turn_id not in here:
                yield Move((name, "pretends to finish", turn_id), after, ("from", name, "final", turn_id))


# --- what is bound to happen ------------------------------------------------------------------------------------------


def certainties(world: World, bounds: Bounds) -> Iterator[Move]:
    for timer in sorted(world.timers):
        if timer[0] != "answer":
            rung = {timer, ("answer", timer[1])} if timer[0] == "confirm" else {timer}
            yield Move(("timer", *timer), world._replace(timers=world.timers - rung), ("timer", *timer))
    yield from _manager_works(world)
    yield from _input_is_taken_in(world)
    for echo in sorted(world.echoes):
        yield Move(("again", *echo[1:]), world._replace(echoes=world.echoes - {echo}), echo)
    for agent in range(bounds.agents):
        for move in (*_is_told_to_stop(world, agent), *_works(world, agent, bounds)):
            yield move
            if world.left.repeats and move.heard:
                yield _twice(move)


def _manager_works(world: World) -> Iterator[Move]:
    """It works through its requests in order."""
    if world.asked:
        (tx_id, request), *rest = world.asked
        after = world._replace(asked=tuple(rest))
        for outcome in ("done", "failed"):
            move = Move(("manager", request, tx_id, outcome), after, ("manager", tx_id, request, outcome))
            yield move
            if world.left.repeats:
                yield _twice(move)
        yield Move(("manager is not heard", tx_id), after)


def _input_is_taken_in(world: World) -> Iterator[Move]:
    for offer in world.offered:
        after = world._replace(offered=tuple(other for other in world.offered if other != offer))
        yield Move((offer[2], "takes in", offer[0]), after, ("steered", offer[0], offer[1]))
        yield Move((offer[2], "leaves", offer[0]), after)


def _twice(move: Move) -> Move:
    world, left = move.world, move.world.left
    after = world._replace(left=left._replace(repeats=left.repeats - 1), echoes=world.echoes | {move.heard})
    return Move((*move.label, "(to be heard again)"), after, move.heard)


def _is_told_to_stop(world: World, agent: int) -> Iterator[Move]:
    """It may stop and say so, or take no notice."""
    if world.cancels[agent]:
        name, turn_id = f"a{agent + 1}", world.cancels[agent][0]
        told = world._replace(cancels=_put(world.cancels, agent, world.cancels[agent][1:]))
        yield Move((name, "stops", turn_id), _without(told, agent, turn_id), ("from", name, "cancel_ack", turn_id))
        yield Move((name, "ignores the cancel of", turn_id), told)


def _works(world: World, agent: int, bounds: Bounds) -> Iterator[Move]:
    name = f"a{agent + 1}"
    for run in world.runs[agent]:
        if run.silent:
            continue
        turn_id, gone = run.turn_id, _without(world, agent, run.turn_id)
        if not run.acknowledged:
            after = _with(gone, agent, run._replace(acknowledged=True))
            yield Move((name, "acks", turn_id), after, ("from", name, "ack", turn_id))
        if run.chunks:
            after = _with(gone, agent, run._replace(chunks=run.chunks - 1))
            yield Move((name, "says a word in", turn_id), after, ("from", name, "chunk", turn_id))
        if world.left.handovers:
            count = world.left.handovers
            fewer = world._replace(left=world.left._replace(handovers=count - 1))
            for target in (*(other for other in bounds.names if other != name), NOBODY):
                heard = ("handover", name, turn_id, target, f"h{count}")
                yield Move((name, "wants to hand over to", target), fewer, heard)
        yield Move((name, "finishes", turn_id), gone, ("from", name, "final", turn_id))
        yield Move((name, "fails", turn_id), gone, ("from", name, "failed", turn_id))
        yield Move((name, "falls silent in", turn_id), _with(gone, agent, Run(turn_id, True, 0, silent=True)))


def _with(world: World, agent: int, run: Run) -> World:
    return world._replace(runs=_put(world.runs, agent, tuple(sorted((*world.runs[agent], run)))))


def _without(world: World, agent: int, turn_id: str) -> World:
    runs = tuple(run for run in world.runs[agent] if run.turn_id != turn_id)
    return world._replace(runs=_put(world.runs, agent, runs))


def _put(items: tuple[_T, ...], index: int, item: _T) -> tuple[_T, ...]:
    return (*items[:index], item, *items[index + 1 :])


# --- what the session hears, and what it makes the host do ------------------------------------------------------------


@cache
def message_of(heard: Heard, bounds: Bounds) -> Message:  # noqa: PLR0911 - one line for each word
    match heard:
        case ("input", turn_id, asked):
            return UserInput(turn_id, "trace", "u", "hello", {}, bounds.configured(), asked or None)
        case ("cancel", turn_id):
            return CancelRequested(turn_id or None, "u")
        case ("timer", "ack", turn_id):
            return AckTimedOut(turn_id)
        case ("timer", "cancel", turn_id):
            return CancelTimedOut(turn_id)
        case ("timer", "manager", tx_id):
            return ManagerTimedOut(tx_id)
        case ("timer", "confirm", tx_id):
            return ConfirmTimedOut(tx_id)
        case ("timer", _, turn_id):
            return RunFailed(turn_id, "deadline_exceeded", "out of time")
        case ("from", agent, what, turn_id):
            return _word(agent, what, turn_id)
        case ("steered", turn_id, into):
            return SteeringTaken(turn_id, into)
        case _:
            return _about_the_session(heard, bounds)


def _about_the_session(heard: Heard, bounds: Bounds) -> Message:  # noqa: PLR0911 - the same
    match heard:
        case ("remove", agent, tx_id):
            return RemoveRequested(tx_id, agent, "u", "a1")
        case ("invite", agent, tx_id):
            return InviteRequested(tx_id, agent, "u", activate=True)
        case ("switch", agent, _):
            return SwitchRequested(agent, "u")
        case ("close", tx_id):
            return CloseRequested(tx_id, "u")
        case ("open", tx_id):
            return OpenRequested(tx_id, "u")
        case ("handover", agent, turn_id, target, tx_id):
            return HandoverRequested(tx_id, turn_id, agent, target, frozenset(bounds.names), "why", "what")
        case ("answer", word, tx_id):
            return HandoverAnswered(tx_id, "u", word == "confirms", f"t-{tx_id}")
        case ("manager", tx_id, request, outcome):
            return _manager_word(tx_id, request, outcome)
        case _:
            raise ValueError(heard)


_ANSWERS: dict[tuple[str, str], ManagerAnswer] = {
    ("add_agent", "done"): "ADD_AGENT_DONE",
    ("add_agent", "failed"): "ADD_AGENT_FAILED",
    ("remove_agent", "done"): "REMOVE_AGENT_DONE",
    ("remove_agent", "failed"): "REMOVE_AGENT_FAILED",
    ("session_open", "done"): "SESSION_OPENED",
    ("session_open", "failed"): "SESSION_FAILED",
    ("session_close", "done"): "SESSION_CLOSED",
    ("session_close", "failed"): "SESSION_FAILED",
}


def _manager_word(tx_id: str, request: str, outcome: str) -> Message:
    opened = {"members": ["a1"], "active_agent_id": "a1"}
    error = {"code": "nope", "message": "no", "retryable": False}
    payload = error if outcome == "failed" else opened if request == "session_open" else {}
    return ManagerReplied(tx_id, _ANSWERS[request, outcome], payload)


def _word(agent: str, what: str, turn_id: str) -> Message:
    match what:
        case "ack":
            return InputAcknowledged(turn_id)
        case "cancel_ack":
            return CancelAcknowledged(turn_id)
        case "chunk":
            return OutputReceived(turn_id, agent, "CHUNK", "word", {})
        case "final":
            return OutputReceived(turn_id, agent, "FINAL", None, {})
        case _:
            return RunFailed(turn_id, RunnersOwn(f"runner.{what}"), "the run is gone")


def perform(world: World, commands: Sequence[Command], bounds: Bounds) -> World:
    """What the host does when asked. It is careless: runs that were cut off may go on talking."""
    for command in commands:
        world = _perform(world, command, bounds)
    return world


def _perform(world: World, command: Command, bounds: Bounds) -> World:  # noqa: PLR0911 - one line for each command
    match command:
        case StartRun(turn_id, agent_id):
            run = Run(turn_id, acknowledged=False, chunks=bounds.chunks, silent=False)
            started = _with(world, bounds.names.index(agent_id), run)
            return started._replace(timers=world.timers | {("deadline", turn_id)})
        case CancelRun(turn_id, agent_id):
            agent = bounds.names.index(agent_id)
            return world._replace(cancels=_put(world.cancels, agent, (*world.cancels[agent], turn_id)))
        case AwaitAck(turn_id):
            return world._replace(timers=world.timers | {("ack", turn_id)})
        case AwaitCancelAck(turn_id):
            return world._replace(timers=world.timers | {("cancel", turn_id)})
        case ForceStop():
            return world
        case AskManager(tx_id, request):
            return world._replace(asked=(*world.asked, (tx_id, request)))
        case AwaitManager(tx_id):
            return world._replace(timers=world.timers | {("manager", tx_id)})
        case AwaitConfirm(tx_id):
            return world._replace(timers=world.timers | {("confirm", tx_id), ("answer", tx_id)})
        case OfferSteering(turn_id, agent_id, input_turn_id):
            return world._replace(offered=(*world.offered, (input_turn_id, turn_id, agent_id)))
        case EndRun(turn_id):
            return world._replace(ended=world.ended | {turn_id}, timers=world.timers - {("deadline", turn_id)})
