"""Every fact in the words of AG-UI, for clients of 1.0 and before; every event as the official models want it."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from http_api.facts import NEW, OLD, TURN, delta, events_of, fact, message, output, parse, stored, user_input
from http_api.ordering import assert_official
from paddock.http_api.ag_ui.events import TERMINAL_KINDS, AgUiPeer, frames
from paddock.http_api.streams.session_stream import as_ag_ui
from paddock.rules.run.input import NativeInput, World, read_run_input
from paddock.rules.session.facts import VOCABULARY, Fact

BOTH = pytest.mark.parametrize("peer", [NEW, OLD], ids=["1.0", "0.x"])
FINAL = "AGENT_OUTPUT:FINAL"


def say(one: Fact, peer: AgUiPeer = NEW) -> list[dict[str, Any]]:
    said = events_of(frames(stored(one)[0], peer))
    for event in said:
        assert_official(event)
    return said


@BOTH
def test_a_run_starts_with_the_names_its_client_gave(peer: AgUiPeer) -> None:
    (event,) = say(user_input(door="ag-ui"), peer)
    version = {"protocolVersion": "1.0"} if peer is NEW else {}
    names = {"threadId": peer.thread_id, "runId": "run-001"}
    assert event == {"type": "RUN_STARTED", "timestamp": 1500, **names, **version}


def test_the_native_stream_repeats_what_was_asked() -> None:
    body = b"""{"threadId": "550e8400-e29b-41d4-a716-446655440000", "runId": "run-001", "state": {"a": null},
      "parentRunId": "run-000", "context": [{"description": "d", "value": "v"}],
      "messages": [{"id": "m", "role": "user", "name": "Ann", "encrypted_value": "e",
                    "content": [{"type": "text", "text": "hi"},
                                {"type": "binary", "mimeType": "image/png", "url": "u"}]},
                   {"id": "a", "role": "assistant", "content": null, "tool_calls":
                     [{"id": "t", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
                   {"id": "r", "role": "tool", "content": "x", "tool_call_id": "t", "error": null}],
      "tools": [{"name": "f", "description": "", "parameters": {}}], "forwardedProps": {"runtime_mode": "chat"}}"""
    given = read_run_input(body, World(lambda _: True))
    assert isinstance(given, NativeInput)
    (event,) = say(user_input(message=dict(given.message), **given.params))
    assert event["parentRunId"] == "run-000"
    repeated = event["input"]
    assert [one["role"] for one in repeated["messages"]] == ["user", "assistant", "tool"]
    source = {"type": "url", "value": "u", "mimeType": "image/png"}
    assert repeated["messages"][0] == {
        "id": "m",
        "role": "user",
        "name": "Ann",
        "encryptedValue": "e",
        "content": [{"type": "text", "text": "hi"}, {"type": "image", "source": source}],
    }
    assert repeated["tools"] == [{"name": "f", "description": "", "parameters": {}}]
    assert repeated["forwardedProps"] == {"runtime_mode": "chat"}
    assert "input" not in say(user_input(message=dict(given.message), **given.params), OLD)[0]


@BOTH
def test_a_piece_opens_its_message_once_and_empty_text_is_never_sent(peer: AgUiPeer) -> None:
    start = {"type": "TEXT_MESSAGE_START", "messageId": "m1", "role": "assistant"}
    content = {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": 'a"\n\u2028b'}
    assert say(delta("m1", 'a"\n\u2028b', opens=True), peer) == [start, content]
    assert say(delta("m1", 'a"\n\u2028b', opens=False), peer) == [content]
    assert say(delta("m1", "", opens=True), peer) == [start]
    assert say(delta("m1", "", opens=False), peer) == []


@BOTH
@pytest.mark.parametrize(
    ("content", "metadata", "kinds", "text"),
    [
        ("hello", {}, ["START", "CONTENT", "END"], "hello"),
        ("", {}, ["START", "END"], ""),
        (None, {}, ["START", "END"], ""),
        ([{"type": "text", "text": "he"}, {"type": "text", "text": "llo"}], {}, ["START", "CONTENT", "END"], "hello"),
        ("hello", {"first_seq": 1, "lengths": [3], "streamed": 3}, ["CONTENT", "END"], "lo"),
        ("hel", {"first_seq": 1, "lengths": [3], "streamed": 3}, ["END"], ""),
        ("hel", {"first_seq": 1, "lengths": [3], "streamed": 3, "partial": True}, ["END"], ""),
    ],
)
def test_a_finished_message_says_what_was_not_said_yet(
    peer: AgUiPeer, content: Any, metadata: dict[str, Any], kinds: list[str], text: str
) -> None:
    said = say(message("m1", content, **metadata), peer)
    assert [event["type"].removeprefix("TEXT_MESSAGE_") for event in said] == kinds
    assert "".join(event.get("delta", "") for event in said) == text
    assert {event["messageId"] for event in said} == {"m1"}


@BOTH
def test_a_message_that_was_cut_says_so_at_its_end(peer: AgUiPeer) -> None:
    cut = message("m1", "hel", first_seq=1, lengths=[3], streamed=3, partial=True)
    assert say(cut, peer) == [{"type": "TEXT_MESSAGE_END", "messageId": "m1", "metadata": {"partial": True}}]
    [(_, end)] = parse(as_ag_ui(stored(cut)[0], "thread"))
    assert end["metadata"] == {"partial": True, "turnId": TURN}  # once, with both
    assert_official(end)


def test_a_message_that_ended_differently_than_it_was_streamed_is_corrected() -> None:
    revised = message("m1", "new", first_seq=1, lengths=[3], streamed=3, revised=True, streamed_text="old")
    assert say(revised) == [
        {"type": "TEXT_MESSAGE_END", "messageId": "m1"},
        {"type": "CUSTOM", "name": "paddock.message.revised", "value": {"messageId": "m1", "content": "new"}},
    ]


def test_a_tool_call_is_told_whole_and_its_answer_is_text() -> None:
    called = {"tool_call_id": "t1", "tool_name": "weather", "parameters": {"city": "北京"}}
    assert say(output("tool.call.started", called)) == [
        {"type": "TOOL_CALL_START", "toolCallId": "t1", "toolCallName": "weather"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "t1", "delta": '{"city":"北京"}'},
        {"type": "TOOL_CALL_END", "toolCallId": "t1"},
    ]
    assert len(say(output("tool.call.started", {"tool_call_id": "t1", "tool_name": "weather"}))) == 2
    (answer,) = say(output("tool.call.completed", {"tool_call_id": "t1", "tool_name": "weather", "result": {"c": 21}}))
    assert answer == {
        "type": "TOOL_CALL_RESULT",
        "messageId": "t1:result",
        "toolCallId": "t1",
        "content": '{"c":21}',
        "role": "tool",
    }


@pytest.mark.parametrize(
    ("answer", "content"),
    [
        ({"result": "sunny"}, "sunny"),
        ({"result": 0}, "0"),
        ({"result": None, "artifact": {"id": "a"}}, '{"id":"a"}'),
        ({"error": "no such city", "result": "x"}, '{"error":"no such city"}'),
        ({}, ""),
    ],
)
def test_an_answer_of_any_kind_becomes_text_and_an_error_says_so(answer: dict[str, Any], content: str) -> None:
    assert say(output("tool.call.completed", {"tool_call_id": "t1", **answer}))[0]["content"] == content


def test_a_finished_run_names_open_calls_and_usage() -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7, "model": "demo", "cost": 0.1}
    one = fact(FINAL, {"type": "run.completed", "data": {"usage": usage, "pending_tool_call_ids": ["t1"]}})
    counted = [{"model": "demo", "inputTokens": 3, "outputTokens": 4, "totalTokens": 7}]
    (new,), (old,) = say(one), say(one, OLD)
    assert new["outcome"] == {"type": "success", "pendingToolCallIds": ["t1"]}
    assert new["usage"] == old["usage"] == counted
    assert "outcome" not in old
    (plain,) = say(fact(FINAL, {"type": "run.completed", "data": {}}))
    assert plain.keys() == {"type", "timestamp", "threadId", "runId"}


@BOTH
@pytest.mark.parametrize("kind", ["RUN_FAILED", "ROUTE_TIMEOUT", "AGENT_NOT_IN_SESSION"])
def test_a_failed_run_ends_with_its_code(peer: AgUiPeer, kind: str) -> None:
    (event,) = say(fact(f"ERROR:{kind}", {"code": "runner.crashed", "message": "it fell"}), peer)
    assert event == {"type": "RUN_ERROR", "timestamp": 1500, "message": "it fell", "code": "runner.crashed"}


@pytest.mark.spec("http/dialects")
def test_a_cancelled_run_ends_as_each_client_can_bear() -> None:
    assert say(fact("EVENT:CANCELED", {}))[0]["outcome"] == {"type": "cancelled"}
    (event,) = say(fact("EVENT:CANCELED", {}), OLD)
    assert (event["type"], event["code"]) == ("RUN_ERROR", "cancelled")


def test_what_agui_has_no_event_for_is_custom_and_a_state_value_stays_inside() -> None:
    (updated,) = say(output("state.updated", {"scope": "conversation", "key": "k", "value": "secret"}))
    assert updated == {
        "type": "CUSTOM",
        "name": "paddock.state.updated",
        "value": {"scope": "conversation", "key": "k"},
    }
    assert say(output("artifact.created", {"id": "a"}))[0]["name"] == "paddock.artifact.created"
    (queued,) = say(fact("EVENT:TURN_QUEUED", {"agent_id": "a", "position": 2}))
    assert queued == {"type": "CUSTOM", "name": "paddock.turn.queued", "value": {"position": 2}}


SILENT = {
    "EVENT:TURN_ACCEPTED", "EVENT:AGENT_STARTED", "CONTROL:INPUT_ACK", "CONTROL:CANCEL", "CONTROL:CANCEL_ACK",
    "EVENT:CANCEL_SENT", "ERROR:CANCEL_TIMEOUT", "CONTROL:SESSION_OPENED", "CONTROL:SWITCH_AGENT", "EVENT:AGENT_ADDED",
}  # fmt: skip


@BOTH
@pytest.mark.parametrize("kind", sorted(SILENT))
def test_what_is_said_inside_stays_inside(peer: AgUiPeer, kind: str) -> None:
    assert say(fact(kind, {"agent_id": "x"}), peer) == []
    assert say(fact("USER_INPUT", None, target="AGENT"), peer) == []


@pytest.mark.spec("http/stream-order")
def test_exactly_the_facts_that_end_a_run_say_its_last_word() -> None:
    kinds = {f"{event}:{subtype}" for event, subtypes in VOCABULARY.items() for subtype in subtypes if subtype}
    kinds -= {"AGENT_OUTPUT:CHUNK"}
    ending = {kind for kind in kinds for event in say(fact(kind, {})) if event["type"] in {"RUN_FINISHED", "RUN_ERROR"}}
    assert ending == TERMINAL_KINDS


def test_a_cursor_names_the_dialect_the_fact_and_the_frame() -> None:
    (piece,) = stored(delta("m1", "x", opens=True), after=41)
    assert [cursor for cursor, _ in parse(frames(piece, NEW))] == ["1.42.0", "1.42.1"]
    assert [cursor for cursor, _ in parse(frames(piece, OLD))] == ["0.42.0", "0.42.1"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
NAMES = [
    "tool_call_id",
    "tool_name",
    "parameters",
    "result",
    "error",
    "artifact",
    "message",
    "usage",
    "code",
    "scope",
    "pending_tool_call_ids",
    "key",
]


@pytest.mark.spec("http/stream-valid")
@settings(max_examples=300, deadline=None)
@given(
    kind=st.sampled_from(
        ["message.completed", "tool.call.started", "tool.call.completed", "state.updated", "action.requested", "FINAL"]
    ),
    data=st.dictionaries(st.sampled_from(NAMES), JSON, max_size=6),
    peer=st.sampled_from([NEW, OLD]),
)
def test_whatever_a_runner_says_becomes_valid_events(kind: str, data: dict[str, Any], peer: AgUiPeer) -> None:
    payload = {"type": kind, "data": data}
    one = fact(FINAL, payload) if kind == "FINAL" else fact("AGENT_OUTPUT:MESSAGE", payload, {"message_id": "m"})
    assert say(one, peer)
