"""Reading one line of the wire: tolerant, and never an exception but the one that says it is no frame."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.rules.run.results import Result
from paddock.runners.wire import frames
from paddock.runners.wire.frames import BadFrameError, Frame, decode

PARAMS: dict[str, Any] = {
    "run_id": "r1",
    "type": "message.delta",
    "data": {"a": [1, 2.5, None]},
    "sequence": 3,
    "timestamp": 1.5,
}
RESULT = Result(**PARAMS)


def line(**fields: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **fields}).encode()


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
@pytest.mark.parametrize("order", [("jsonrpc", "method", "params"), ("params", "method", "jsonrpc")])
def test_a_result_reads_the_same_however_it_is_written(separators: tuple[str, str], order: tuple[str, ...]) -> None:
    fields = {"jsonrpc": "2.0", "method": "run_result", "params": PARAMS | {"from_the_future": 1}}
    written = json.dumps({key: fields[key] for key in order}, separators=separators).encode()
    assert decode(written) == decode(written + b"\r") == RESULT


def test_requests_notifications_and_answers_are_told_apart_by_what_they_hold() -> None:
    assert decode(line(id=1, method="state.get", params={})) == Frame(id=1, method="state.get", params={})
    assert decode(line(method="hello")) == Frame(method="hello")
    assert decode(line(id="x", result={"ok": True})) == Frame(id="x", result={"ok": True})
    refused = decode(line(id=2, error={"code": -32000, "message": "no", "data": {"code": "not_found"}}))
    assert isinstance(refused, Frame)
    assert refused.error == frames.RemoteError(-32000, "no", {"code": "not_found"})


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (r"half \ud83d here", "half � here"),
        (r"low \ude00 alone", "low � alone"),
        (r"two \ud83d\ud83d\ude00", "two �😀"),
        (r"whole \ud83d\ude00", "whole 😀"),
        (r"escaped \\ud83d and \ud83d", "escaped \\ud83d and �"),
        (r"escaped \\\ud83d\\", "escaped \\�\\"),
        (r"in a row \ud83d\uDE00\uDE00\uD83D\n", "in a row 😀��\n"),
    ],
)
def test_half_a_character_is_replaced_and_everything_else_kept(text: str, read: str) -> None:
    written = b'{"jsonrpc":"2.0","method":"run_result","params":{"run_id":"r","type":"t","data":{"x":"%s"}}}'
    frame = decode(written % text.encode())
    assert isinstance(frame, Result)
    assert frame.data == {"x": read}


def test_half_a_character_among_very_many_escapes_is_replaced() -> None:
    frame = decode(b'{"id":1,"method":"state.set","params":{"x":"\\ud83d%s"}}' % (b"\\n" * 1_000_000))
    assert isinstance(frame, Frame)
    assert frame.params == {"x": "�" + "\n" * 1_000_000}


@pytest.mark.spec("wire/values-cap")
@pytest.mark.parametrize("value", [b"[]", b"1", b'{"a":"b"}', b'"a"', b"[[[1]]]"])
def test_a_line_of_too_many_values_is_refused_unread_under_its_id(value: bytes) -> None:
    whole = b'{"id":"c1","method":"state.set","params":{"x":[%s]}}'
    with pytest.raises(BadFrameError, match=f"a line may hold at most {frames.MAX_VALUES} values") as refused:
        decode(whole % b",".join([value] * (frames.MAX_VALUES + 1)))
    assert refused.value.call is not None
    assert (refused.value.call.id, refused.value.call.method) == ("c1", "state.set")


@pytest.mark.parametrize("words", [b"a, [b], {c}", rb"\"a,\" [b]", rb"a\\\\, [\"b\\"])
def test_commas_and_brackets_of_a_text_are_no_values(words: bytes) -> None:
    frame = decode(b'{"id":1,"method":"state.set","params":{"x":"%s","y":[1,2]}}' % (words * 100_000))
    assert isinstance(frame, Frame)
    assert frame.params["y"] == [1, 2]


def test_a_broken_result_still_says_whose_it_is() -> None:
    with pytest.raises(BadFrameError) as broken:
        decode(b'{"jsonrpc":"2.0","method":"run_result","params":{"run_id":"r1","type":"t","data":{"n":NaN}}}')
    assert broken.value.run_id == "r1"
    with pytest.raises(BadFrameError) as wrong:
        decode(line(method="run_result", params=PARAMS | {"data": []}))
    assert wrong.value.run_id == "r1"


@given(st.binary(max_size=200) | st.text(max_size=100).map(str.encode))
def test_no_bytes_do_more_harm_than_not_being_a_frame(written: bytes) -> None:
    with suppress(BadFrameError):
        assert isinstance(decode(written), Frame | Result)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just("run_result"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["run_id", "type", "data", "sequence", "id", "code"]), inner, max_size=4)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error"]), VALUES, max_size=6))
def test_no_object_does_more_harm_than_not_being_a_frame(fields: dict[str, object]) -> None:
    with suppress(BadFrameError):
        assert isinstance(decode(json.dumps(fields).encode()), Frame | Result)
