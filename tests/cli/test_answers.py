"""What a person sees of a turn."""

import io
from typing import Any

import pytest

from paddock.cli.chatting.answers import AnswerPrinter, TurnEnding, colours_wanted, ending
from paddock.cli.output import harmless


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(*events: dict[str, Any], out: io.StringIO | None = None) -> tuple[str, str]:
    out, side = out or io.StringIO(), io.StringIO()
    printer = AnswerPrinter(out=out, side=side)
    for event in events:
        printer.show(event)
    return out.getvalue(), side.getvalue()


def test_an_answer_is_printed_as_it_streams_and_ends_its_line_once() -> None:
    out, side = shown(
        {"type": "RUN_STARTED"},
        {"type": "TEXT_MESSAGE_START"},
        {"type": "TEXT_MESSAGE_CONTENT", "delta": "hel"},
        {"type": "TEXT_MESSAGE_CONTENT", "delta": "lo"},
        {"type": "TEXT_MESSAGE_END"},
        {"type": "RUN_FINISHED"},
    )
    assert (out, side) == ("hello\n", "")


def test_what_happens_beside_the_answer_goes_to_the_side() -> None:
    out, side = shown(
        {"type": "CUSTOM", "name": "paddock.turn.queued", "value": {"position": 1}},
        {"type": "TOOL_CALL_START", "toolCallName": "weather"},
        {"type": "TEXT_MESSAGE_CONTENT", "delta": "wet"},
        {"type": "CUSTOM", "name": "paddock.message.revised", "value": {"content": "dry"}},
    )
    assert out == "wet\ndry\n"
    assert "[waiting for the turn before this one]" in side
    assert "[using weather]" in side


def test_an_agent_cannot_steer_the_terminal_but_a_pipe_gets_every_byte() -> None:
    nasty = {"type": "TEXT_MESSAGE_CONTENT", "delta": "a\x1b[2Jb\x9bc\ttab\n"}
    assert shown(nasty, out=Terminal())[0] == "a[2Jbc\ttab\n"
    assert shown(nasty)[0] == "a\x1b[2Jb\x9bc\ttab\n"


def test_words_of_every_language_are_harmless() -> None:
    text = "北京 è 👩‍👩‍👧 ok"
    assert harmless(text) == text


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ({"type": "TEXT_MESSAGE_END"}, None),
        ({"type": "RUN_FINISHED"}, TurnEnding()),
        ({"type": "RUN_FINISHED", "outcome": {"type": "success"}}, TurnEnding()),
        ({"type": "RUN_FINISHED", "outcome": {"type": "cancelled"}}, TurnEnding(cancelled=True)),
        ({"type": "RUN_ERROR", "code": "cancelled", "message": "stopped"}, TurnEnding(cancelled=True)),
        ({"type": "RUN_ERROR", "code": "x", "message": "no"}, TurnEnding(failure="The run failed: no (x)")),
        ({"type": "RUN_ERROR"}, TurnEnding(failure="The run failed: no reason given")),
    ],
)
def test_a_turn_ends_well_cancelled_or_with_a_reason(event: dict[str, Any], expected: TurnEnding | None) -> None:
    assert ending(event) == expected


def test_colours_are_for_terminals_that_want_them() -> None:
    assert colours_wanted(Terminal(), {})
    assert not colours_wanted(Terminal(), {"NO_COLOR": "1"})
    assert not colours_wanted(Terminal(), {"TERM": "dumb"})
    assert not colours_wanted(io.StringIO(), {})
