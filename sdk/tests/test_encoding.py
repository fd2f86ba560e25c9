"""Frames as bytes: the fast way and the general way say the same, and nothing a runner says can break a line."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock_sdk import encoding
from paddock_sdk.encoding import ResultEncoder
from paddock_sdk.protocol.messages import Message
from paddock_sdk.results import Delta
from paddock_sdk.serve import LineSplitter

any_text = st.text(st.characters())  # half characters (surrogates) included
any_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats() | any_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(any_text, inner, max_size=4),
    max_leaves=12,
)


@given(text=any_text, run_id=st.text(min_size=1))
def test_a_delta_is_spelled_the_same_by_the_fast_and_the_general_way(text: str, run_id: str) -> None:
    encoder = ResultEncoder(run_id)
    assert encoder.delta(text, 3, 17) == encoder.result("message.delta", Delta(text).data, 3, 17)


@given(data=st.dictionaries(any_text, any_json, max_size=4))
def test_whatever_is_said_is_one_line_of_strict_utf8_json(data: dict[str, Any]) -> None:
    def no_constants(name: str) -> None:
        raise AssertionError(name)

    line = ResultEncoder("r").result("custom", data, 1, 2)
    assert line.index(b"\n") == len(line) - 1
    assert json.loads(line.decode(), parse_constant=no_constants)["params"]["type"] == "custom"


@given(st.dictionaries(st.text(), st.none() | st.text() | st.integers(0, 9), max_size=4))
def test_what_json_can_say_arrives_unchanged(data: dict[str, Any]) -> None:
    assert json.loads(encoding.notification("x", data))["params"] == data


def test_what_is_no_json_at_all_is_an_error_and_not_a_guess() -> None:
    with pytest.raises(ValueError, match="object"):
        encoding.as_json({"x": object()})


def test_half_a_character_inside_a_model_is_replaced_too() -> None:
    assert json.loads(encoding.as_json([Message(role="user", content="a\ud800")])) == [
        {"role": "user", "content": "a?"}
    ]


def test_models_are_written_without_their_nulls_and_plain_nulls_stay() -> None:
    said = json.loads(encoding.as_json({"m": Message(role="user", content="hi"), "value": None}))
    assert said == {"m": {"role": "user", "content": "hi"}, "value": None}


@given(lines=st.lists(st.binary(min_size=1).map(lambda b: b.replace(b"\n", b"_")), max_size=6), data=st.data())
def test_lines_come_out_whole_however_the_bytes_are_cut(lines: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(line + b"\n" for line in lines) + b"unfinished"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=5)))
    splitter = LineSplitter()
    edges = [0, *cuts, len(stream)]
    out = [line for start, end in pairwise(edges) for line in splitter.feed(stream[start:end])]
    assert out == lines
    assert splitter.waiting == len(b"unfinished")
