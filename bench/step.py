"""How fast the session machine is by itself: `python -m bench.step`. One core, no host, no store."""

import sys
from time import process_time

from paddock.rules.session.commands import Command
from paddock.rules.session.decide import step
from paddock.rules.session.messages import Agents, InputAcknowledged, Message, OutputReceived, UserInput
from paddock.rules.session.state import SessionState

TARGET = 50_000
TURNS = 20_000
AGENTS = Agents("ada", {"ada": "queue", "bob": "queue"})


def turn(number: int) -> list[Message]:
    """A short run as the session hears it: input, ack, two pieces, the end."""
    turn_id = f"t{number}"
    return [
        UserInput(turn_id, "trace", "uma", {"text": "hi"}, {}, AGENTS),
        InputAcknowledged(turn_id),
        OutputReceived(turn_id, "ada", "CHUNK", {"text": "hel"}, {}),
        OutputReceived(turn_id, "ada", "MESSAGE", {"text": "hello"}, {}),
        OutputReceived(turn_id, "ada", "FINAL", {}, {}),
    ]


def messages_per_second(turns: int = TURNS) -> float:
    """Whole turns one after the other, decided and made true."""
    messages = [message for number in range(turns) for message in turn(number)]
    state, commands = SessionState(), list[Command]()
    started = process_time()
    for message in messages:
        state, decision = step(state, message)
        commands += decision.commands
    seconds = process_time() - started
    assert state.turn is None
    return len(messages) / seconds


def main() -> int:
    figure = max(messages_per_second() for _ in range(3))
    print(f"step: {figure:,.0f} messages/s on one core (target {TARGET:,})")
    return 0 if figure >= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
