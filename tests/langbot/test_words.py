"""Lines and results of LangBot's wire, read and written without a process."""

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddock_runners.langbot.frames import BrokenWireError, Joiner, lines_of
from paddock_runners.langbot.results import Translation
from paddock_sdk import Result

JSON = st.recursive(
    st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
)


def joined(lines: Iterable[bytes]) -> dict[str, Any] | None:
    joiner = Joiner()
    return [joiner.feed(line) for line in lines][-1]


@settings(max_examples=30, deadline=None)
@given(JSON, st.integers(0, 20_000))
def test_a_message_of_any_length_comes_back_whole(value: Any, length: int) -> None:
    message = {"seq_id": 1, "data": {"value": value, "text": "茶\n" * length}}
    lines = [*lines_of(message)]
    assert joined(lines) == message
    assert all(len(line) < 65_536 and line.count(b"\n") == 1 for line in lines)


def test_too_long_a_message_is_not_said() -> None:
    with pytest.raises(ValueError, match="too long for a LangBot plugin"):
        list(lines_of({"text": "x" * 16 * 1024 * 1024}))


@pytest.mark.parametrize("line", [b"", b"hello", b"[1]", b"{not json}", b"\xff\xfe"])
def test_a_line_that_is_no_object_is_passed_over(line: bytes) -> None:
    assert Joiner().feed(line) is None


@pytest.mark.parametrize(
    "lines",
    [
        [{"type": "chunk_start", "total_size": -1}],
        [{"type": "chunk_start", "total_size": 10**12}],
        [{"type": "chunk_data", "data": "x", "offset": 0}],
        [{"type": "chunk_start", "total_size": 2}, {"type": "chunk_data", "data": "xyz", "offset": 0}],
        [{"type": "chunk_start", "total_size": 2}, {"type": "chunk_data", "data": "x", "offset": 1}],
        [{"type": "chunk_start", "total_size": 2}, {"type": "chunk_end"}],
    ],
)
def test_pieces_that_do_not_fit_break_the_wire(lines: list[dict[str, Any]]) -> None:
    with pytest.raises(BrokenWireError):
        joined(json.dumps(line).encode() for line in lines)


def said(*results: dict[str, Any]) -> list[tuple[str, Any]]:
    translation = Translation()
    heard: list[Result] = []
    for result in results:
        heard += translation.read(result)
    return [(one.type, one.data) for one in [*heard, *translation.end()]]


def piece(content: str | None, total: str | None = None) -> dict[str, Any]:
    return {"type": "message.delta", "data": {"chunk": {"content": content, "all_content": total}}}


def deltas(*results: dict[str, Any]) -> list[str]:
    return [data["chunk"]["content"] for kind, data in said(*results) if kind == "message.delta"]


def test_increments_and_running_totals_give_the_same_words() -> None:
    assert deltas(piece("a"), piece("b")) == ["a", "b"]
    assert deltas(piece("a", "a"), piece("b", "ab")) == ["a", "b"]
    assert deltas(piece("a", "a"), piece("ab", "ab"), piece("ab", "ab")) == ["a", "b"]


def test_pieces_without_a_last_word_become_a_message() -> None:
    whole = ("message.completed", {"message": {"role": "assistant", "content": "ab"}})
    assert said(piece("a"), piece("b"))[-1] == whole
    assert said(piece("a"), piece("b"), {"type": "run.completed", "data": {}})[-2] == whole


def test_a_message_said_twice_is_one() -> None:
    message = {"message": {"role": "assistant", "content": "ab"}}
    results = said({"type": "message.completed", "data": message}, {"type": "run.completed", "data": {}})
    assert [kind for kind, _ in results] == ["message.completed", "run.completed"]


def test_nothing_is_read_after_the_end() -> None:
    results = said({"type": "run.failed", "data": {"error": "no"}}, piece("more"), {"type": "run.completed"})
    assert results == [("run.failed", {"code": "runner.error", "message": "no", "retryable": False})]


def test_pictures_pass_and_empty_fields_do_not() -> None:
    content = [{"type": "image_base64", "image_base64": "data:image/png;base64,AA==", "text": None}]
    [(_, data)] = said({"type": "message.completed", "data": {"message": {"content": content}}})
    assert data["message"]["content"] == [{"type": "image_base64", "image_base64": "data:image/png;base64,AA=="}]


@pytest.mark.parametrize("result", [{}, {"type": None}, {"type": "processor.log", "data": {}}, {"type": "new.thing"}])
def test_what_has_no_word_here_is_passed_over(result: dict[str, Any]) -> None:
    assert said(result) == []
