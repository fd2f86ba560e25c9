"""The host reads results with its own fast type; it must read what the protocol's type reads."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.rules.run.results import SHAPES, Result, problem_with
from paddock_sdk.protocol.results import KNOWN_RESULTS, TERMINAL_TYPES, AgentRunResult, parse_result
from paddock_sdk.protocol.results import TERMINAL_TYPES as PROTOCOL_TERMINAL_TYPES

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
results = st.fixed_dictionaries(
    {"run_id": st.text(max_size=40), "type": st.sampled_from(sorted(SHAPES)) | st.text(max_size=20)},
    optional={
        "data": st.dictionaries(st.text(max_size=8), values, max_size=4),
        "sequence": st.none() | st.integers(0, 2**53),
        "timestamp": st.none() | st.integers(0, 2**40),
        "from_the_future": values,
    },
)


@given(results)
def test_both_types_read_the_same(raw: dict[str, Any]) -> None:
    line = json.dumps(raw).encode()
    ours, theirs = msgspec.json.decode(line, type=Result), AgentRunResult.model_validate_json(line)
    for name in ("run_id", "type", "data", "sequence", "timestamp"):
        assert getattr(ours, name) == getattr(theirs, name)


@pytest.mark.parametrize(
    "line", ['{"type": "x"}', '{"run_id": 7, "type": "x"}', '{"run_id": "r", "type": "x", "data": []}']
)
def test_both_types_refuse_the_same(line: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(line, type=Result)
    with pytest.raises(ValueError, match="validation error"):
        AgentRunResult.model_validate_json(line)


def test_every_result_type_of_the_protocol_has_a_shape_and_a_reader() -> None:
    assert set(SHAPES) == set(KNOWN_RESULTS) == set(KNOWN_RESULTS)
    assert TERMINAL_TYPES == PROTOCOL_TERMINAL_TYPES


@given(results)
def test_checking_a_result_never_raises(raw: dict[str, Any]) -> None:
    problem_with(msgspec.convert(raw, Result), 100)


@given(results)
def test_what_the_protocol_reads_as_a_result_is_none_we_refuse(raw: dict[str, Any]) -> None:
    try:
        parse_result(raw)
    except ValueError:
        return
    assert problem_with(msgspec.convert(raw, Result), 100) is None


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("message.delta", {}),
        ("message.delta", {"chunk": "text"}),
        ("message.completed", {"message": {"content": 7}}),
        ("tool.call.started", {"tool_call_id": "1"}),
        ("tool.call.completed", {"tool_name": "t"}),
        ("artifact.created", {}),
        ("state.updated", {"scope": "conversation", "key": "k"}),
        ("action.requested", {"target": {}}),
        ("tool.call.started", {"tool_call_id": "1", "tool_name": "t", "parameters": []}),
        ("tool.call.completed", {"tool_call_id": "1", "tool_name": "t", "artifact": "a-1"}),
        ("tool.call.completed", {"tool_call_id": "1", "tool_name": "t", "error": 7}),
        ("artifact.created", {"artifact_type": "file", "content_base64": {}}),
        ("action.requested", {"action": ""}),
        ("action.requested", {"action": "x" * 129}),
        ("action.requested", {"action": "message.edit", "target": "m-1"}),
        ("action.requested", {"action": "message.edit", "payload": []}),
        ("action.requested", {"action": "message.edit", "payload": {"text": "x" * 262_144}}),
        ("run.completed", {"message": "text"}),
        ("run.completed", {"usage": 3}),
        ("run.completed", {"pending_tool_call_ids": "call-1"}),
        ("run.failed", {"code": 7}),
        ("run.failed", {"code": "x", "message": {}}),
        ("run.failed", {"code": "x", "error": ["why"]}),
    ],
)
def test_a_known_type_of_the_wrong_shape_is_a_protocol_error(kind: str, data: dict[str, Any]) -> None:
    wrong = problem_with(Result("r", kind, data), 100)
    assert wrong is not None
    assert wrong.code == "runner.protocol_error"


def test_a_result_over_the_cap_is_refused_whole_and_names_the_cap() -> None:
    assert problem_with(Result("r", "message.delta", {"chunk": {"content": "x"}}), 1_048_576) is None
    wrong = problem_with(Result("r", "message.delta", {"chunk": {"content": "x"}}), 1_048_577)
    assert wrong is not None
    assert wrong.code == "payload_too_large"
    assert "1048576" in wrong.message
