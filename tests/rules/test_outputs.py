"""Pieces become messages: ids, ranges and lengths are such that the pieces can be dropped and found again."""

from typing import Any

import pytest

from paddock.rules.log.payloads import text_of
from paddock.rules.run.outputs import MAX_CODE, MAX_REASON, Collected
from paddock.rules.run.results import Result
from paddock.rules.session.facts import Event, Fact, Target
from paddock.rules.session.messages import OutputReceived, RunFailed


def a_delta(text: str) -> Result:
    return Result("t", "message.delta", {"chunk": {"role": "assistant", "content": text}})


def whole(text: str) -> Result:
    return Result("t", "message.completed", {"message": {"role": "assistant", "content": text}})


def play(*results: Result, first: int = 10) -> list[OutputReceived | RunFailed]:
    """Read results as if each became one fact, numbered from `first`."""
    collected, outputs, seq = Collected("t", "agent"), [], first
    for result in results:
        for output in collected.read(result, 0.0):
            outputs.append(output)
            if isinstance(output, OutputReceived):
                fact = Fact(
                    Event.AGENT_OUTPUT,
                    output.kind,
                    Target.FRONTEND,
                    turn_id="t",
                    payload=output.payload,
                    metadata=output.metadata,
                )
                collected.note(seq, fact)
            seq += 1
    return outputs


def test_a_finished_message_knows_where_each_of_its_pieces_was() -> None:
    tool = Result("t", "tool.call.started", {"tool_call_id": "1", "tool_name": "x"})
    finished = play(a_delta("ab"), tool, a_delta("cde"), whole("abcdef"))[-1]
    assert isinstance(finished, OutputReceived)
    assert {key: finished.metadata[key] for key in ("message_id", "first_seq", "lengths", "streamed")} == {
        "message_id": "t.1",
        "first_seq": 10,
        "lengths": [2, 0, 3],
        "streamed": 5,
    }


def test_each_message_of_a_turn_has_its_own_id() -> None:
    outputs = play(a_delta("a"), whole("a"), whole("b"), a_delta("c"), Result("t", "run.completed", {}))
    ids = [
        output.metadata["message_id"] for output in outputs if isinstance(output, OutputReceived) and output.metadata
    ]
    assert ids == ["t.1", "t.1", "t.2", "t.3", "t.3"]


def test_only_the_first_piece_opens_a_message_and_empty_pieces_are_nothing() -> None:
    outputs = play(a_delta(""), a_delta("a"), a_delta("b"))
    assert [bool(output.metadata.get("opens")) for output in outputs if isinstance(output, OutputReceived)] == [
        True,
        False,
    ]


def test_a_final_text_that_does_not_continue_what_was_streamed_is_a_revision() -> None:
    finished = play(a_delta("hello"), whole("goodbye"))[-1]
    assert isinstance(finished, OutputReceived)
    assert finished.metadata["revised"]
    assert finished.metadata["streamed_text"] == "hello"


def test_a_run_that_streams_and_completes_has_said_its_message_whole() -> None:
    _, message, final = play(a_delta("hi"), Result("t", "run.completed", {"usage": {"total_tokens": 3}}))
    assert isinstance(message, OutputReceived)
    assert message.payload["data"]["message"]["content"] == "hi"
    assert "partial" not in message.metadata
    assert isinstance(final, OutputReceived)
    assert (final.kind, final.payload["data"]) == ("FINAL", {"usage": {"total_tokens": 3}})


def test_a_run_that_fails_keeps_its_words_as_partial() -> None:
    _, message, failed = play(a_delta("half"), Result("t", "run.failed", {"code": "c", "message": "m"}))
    assert isinstance(message, OutputReceived)
    assert message.metadata["partial"]
    assert isinstance(failed, RunFailed)
    assert (failed.code, failed.message) == ("c", "m")


def test_pieces_that_wait_together_become_one_and_those_of_a_whole_message_none() -> None:
    collected = Collected("t", "agent")
    tool = Result("t", "tool.call.started", {})
    gathered = collected.gather([a_delta("a"), a_delta("b"), tool, a_delta("c"), a_delta("d"), whole("cde")])
    assert [result.type for result in gathered] == ["message.delta", "tool.call.started", "message.completed"]
    assert gathered[0].data["chunk"]["content"] == "ab"
    differs = collected.gather([a_delta("x"), whole("other")])
    assert [result.type for result in differs] == ["message.delta", "message.completed"]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("a", "a"),
        (None, ""),
        ([{"type": "text", "text": "a"}, {"type": "image_url"}, {"type": "text", "text": "b"}], "ab"),
        ([{"type": "text", "text": 7}, "junk", None], ""),
        ({"not": "a list"}, ""),
    ],
)
def test_the_text_of_any_content_can_be_read(content: Any, text: str) -> None:
    assert text_of(content) == text


@pytest.mark.spec("wire/failed-size")
def test_what_a_run_failed_of_is_cut_to_what_a_list_of_runs_can_show() -> None:
    """A page of 200 runs tells it of each of them."""
    said = {"code": "c" * 100_000, "message": "m" * 1_000_000}
    [failed] = play(Result("t", "run.failed", said))
    assert isinstance(failed, RunFailed)
    assert (len(failed.code), len(failed.message)) == (MAX_CODE, MAX_REASON)
    assert failed.message.endswith("m…")
