"""What is new in what a client tells: decided by the names of messages, case by case."""

from typing import Any

import msgspec
import pytest

from paddock.rules.conversations.client_history import ClientMessage, Merged, merge, name_of, supplied_by
from paddock.rules.rows.rows import TranscriptRow

encode = msgspec.json.encode


def row(seq: int, name: str) -> TranscriptRow:
    """u1: what a user said; a1: an answer; c1: a tool call; r1: its result; f1: a file; e1: an event."""
    kinds = {"c": ("assistant", "tool_call"), "r": ("tool", "tool_result"), "e": ("system", "system")}
    role, kind = kinds.get(name[0], ("user" if name[0] == "u" else "assistant", "message"))
    whole = {
        "c": {"tool_call_id": name},
        "r": {"tool_call_id": f"c{name[1:]}"},
        "f": {"artifact": {"artifact_id": "x"}},
    }
    content_json = encode(whole[name[0]]) if name[0] in whole else b""
    metadata = encode({"message_id": name}) if name[0] == "u" else b""
    return TranscriptRow("s", seq, name, "run", role, kind, None, f"text of {name}", content_json, 0.0, metadata)


def known(*names: str) -> list[TranscriptRow]:
    return [row(seq, name) for seq, name in enumerate(names, 1)][::-1]


def told(*names: str) -> list[ClientMessage]:
    roles = {"u": "user", "a": "assistant", "r": "tool"}
    return [
        ClientMessage(name, roles[name[0]], text=f"text of {name.rstrip('!')}{'!' * name.endswith('!')}")
        if name[0] in roles and name[0] != "r"
        else ClientMessage(f"own-{name}", "tool", tool_call_id=f"c{name[1:]}")
        if name[0] == "r"
        else ClientMessage(f"own-{name}", "assistant", tool_calls=[{"id": name, "name": "t", "arguments": ""}])
        for name in names
    ]


@pytest.mark.spec("http/ag-ui-history")
@pytest.mark.parametrize(
    ("ours", "theirs", "found"),
    [
        pytest.param((), ("u1",), Merged(0, supplied=range(0)), id="a first message"),
        pytest.param((), ("u1", "a1", "u2"), Merged(2, supplied=range(2)), id="a history of the client's own"),
        pytest.param(("u1", "a1"), ("u1", "a1", "u2"), Merged(2, supplied=[]), id="the next message"),
        pytest.param(
            ("u1", "a1"),
            ("u2",),
            Merged(0, replaces=1, diverged=True, unseen=(1,), shows_nothing=True),
            id="nothing of ours: an edit of the first message, or only what is new",
        ),
        pytest.param(
            ("u1", "a1"), ("u1", "a1", "u8", "u9"), Merged(3, supplied=[2]), id="one that was never handed in"
        ),
        pytest.param(("u1", "a1", "e1", "f1"), ("u1", "a1", "u2"), Merged(2, supplied=[]), id="what clients never see"),
        pytest.param(("u1", "c1", "r1", "a1"), ("u1", "c1", "r1", "a1", "u2"), Merged(4, supplied=[]), id="tools"),
        pytest.param(("u1",), ("u1", "a1", "u2"), Merged(2, supplied=[]), id="while the answer is being written"),
        pytest.param(
            ("u1", "a1", "u2", "a2"),
            ("u1", "a1", "u9"),
            Merged(2, supplied=[], replaces=3, diverged=True, unseen=(3,)),
            id="an edit",
        ),
        pytest.param(
            ("u1", "a1"), ("u1", "u2"), Merged(1, supplied=[], diverged=True), id="an answer that was not seen stays"
        ),
        pytest.param(
            ("u1", "a1", "u2", "a2"),
            ("u1", "u9"),
            Merged(1, supplied=[], replaces=3, diverged=True, unseen=(3,)),
            id="an unseen answer stays, what followed is left",
        ),
        pytest.param(("u1", "a1"), ("u1!",), Merged(0, replaces=1, diverged=True), id="an edit under the same name"),
        pytest.param(("u1", "c1"), ("u1", "c1", "r1"), Merged(), id="an answer to a call"),
        pytest.param(("u1", "a1"), ("u1", "a1"), Merged(), id="nothing new"),
        pytest.param((), (), Merged(), id="nothing at all"),
    ],
)
def test_what_is_new(ours: tuple[str, ...], theirs: tuple[str, ...], found: Merged) -> None:
    messages = [msgspec.structs.replace(one, message_id=one.message_id.rstrip("!")) for one in told(*theirs)]
    merged = merge(messages, known(*ours))
    assert msgspec.structs.replace(merged, supplied=list(merged.supplied)) == msgspec.structs.replace(
        found, supplied=list(found.supplied)
    )


@pytest.mark.spec("http/ag-ui-branches")
@pytest.mark.parametrize("ours", [("u1", "a1", "u2", "a2"), ("u1", "a1", "u2")])
def test_a_history_that_ends_with_a_question_we_have_asks_it_again(ours: tuple[str, ...]) -> None:
    merged = merge(told("u1", "a1", "u2"), known(*ours))
    assert (merged.again, merged.replaces) == (row(3, "u2"), 3)


def test_every_item_a_client_sees_has_a_name() -> None:
    names = {name: name_of(row(1, name)) for name in ("u1", "a1", "c1", "r1", "e1", "f1")}
    assert names == {"u1": "u1", "a1": "a1", "c1": "c1", "r1": "c1:result", "e1": None, "f1": None}


def test_a_clients_own_history_becomes_items_with_their_calls_and_results() -> None:
    messages: list[ClientMessage] = [
        ClientMessage("u", "user", text="hi"),
        ClientMessage("a", "assistant", text="see", tool_calls=[{"id": "c", "name": "look", "arguments": '{"q":1}'}]),
        ClientMessage("t", "tool", text="grey", tool_call_id="c"),
        ClientMessage("b", "assistant", tool_calls=[{"id": "d", "name": "look", "arguments": "no json"}]),
        ClientMessage("s", "tool", tool_call_id="d", error="it broke"),
    ]
    said: list[tuple[str, str, Any]] = [
        (one.message_id, one.payload["type"], one.payload["data"]) for one in supplied_by(messages)
    ]
    assert said == [
        ("u", "message.completed", {"message": {"role": "user", "content": "hi"}}),
        ("a", "message.completed", {"message": {"role": "assistant", "content": "see"}}),
        ("c", "tool.call.started", {"tool_call_id": "c", "tool_name": "look", "parameters": {"q": 1}}),
        ("t", "tool.call.completed", {"tool_call_id": "c", "tool_name": "look", "result": "grey"}),
        ("d", "tool.call.started", {"tool_call_id": "d", "tool_name": "look", "parameters": {"arguments": "no json"}}),
        ("s", "tool.call.completed", {"tool_call_id": "d", "tool_name": "look", "error": "it broke"}),
    ]
