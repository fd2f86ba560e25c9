"""Pictures that tools give back and users send: shown to the model, counted, told in words where they cannot be."""

from collections.abc import Callable
from typing import Any

import pytest

from official.speaking import ADD, MODEL, demo, resources, shown, texts
from paddock_runners.local_agent import LocalAgent
from paddock_runners.router_worker import RouterWorker
from paddock_runners.toolkit.parts import pictures_of
from paddock_runners.toolkit.tokens import PICTURE, tokens_of_all
from paddock_runners.toolkit.transcript import result_message, turns_of
from paddock_sdk.protocol.history import TranscriptItem
from paddock_sdk.protocol.results import RunCompleted
from paddock_sdk.testing import pretend_host

pytestmark = pytest.mark.anyio

PAINT = {**ADD, "tool_name": "paint", "parameters": None}
CAT, CAT_URL = {"cat": b"\x89PNG1"}, "data:image/png;base64,iVBORzE="


def a_result(name: str, **more: Any) -> list[dict[str, Any]]:
    about = {"artifact_id": name, "mime_type": "image/png", "name": f"{name}.png", **more}
    return [{"type": "text", "text": "painted"}, {"type": "image", **about}]


def painting(*names: str, **more: Any) -> Callable[[Any], dict[str, Any]]:
    """Answers `tools.call` with a picture, each time another."""
    left = list(names)
    return lambda _: {"result": a_result(left.pop(0), **more)}


def wanting(asked: list[Any], rounds: int) -> Callable[[Any], list[Any]]:
    """A model that wants something painted so often."""

    def stream(params: Any) -> list[Any]:
        asked.append(params)
        call = {"id": f"c{len(asked)}", "function": {"name": "paint", "arguments": "{}"}}
        chunk = {"content": "", "tool_calls": [call]} if len(asked) <= rounds else {"content": "done"}
        return [{"chunk": {**chunk, "is_final": True}}]

    return stream


def counts(asked: list[Any]) -> list[int]:
    """How many pictures each question has."""
    return [str(shown(params)).count("'image_base64': 'data:") for params in asked]


async def test_a_picture_of_a_tool_is_seen_in_its_result_and_told_to_others_by_reference() -> None:
    asked: list[Any] = []
    calls = {"models.stream": demo(asked), "tools.call": painting("cat")}
    async with pretend_host(LocalAgent(), calls=calls, artifacts=CAT) as host:
        results = await host.run("call paint {}", resources=resources(PAINT))
    first, second = (shown(params) for params in asked)
    assert second[: len(first)] == first
    words, picture = second[-1]["content"]
    assert (second[-1]["role"], words["text"]) == ("tool", "painted\n(picture: cat.png, image/png, cat)")
    assert picture["image_base64"] == CAT_URL
    assert "iVBOR" not in str([one.to_wire() for one in results])


async def test_the_worker_behind_a_router_sees_it_too() -> None:
    asked: list[Any] = []
    calls = {"models.stream": demo(asked), "tools.call": painting("cat")}
    async with pretend_host(RouterWorker(), calls=calls, artifacts=CAT) as host:
        await host.run("call paint {}", resources=resources(PAINT))
    assert counts(asked)[-1] == 1


async def test_a_model_that_cannot_look_is_told_so_and_nothing_is_read() -> None:
    asked: list[Any] = []
    calls = {"models.stream": demo(asked), "tools.call": painting("cat")}
    blind = {"models": [{**MODEL, "images": False}], "tools": [PAINT]}
    async with pretend_host(LocalAgent(), calls=calls, artifacts=CAT) as host:
        await host.run("call paint {}", resources=blind)
        assert not [call for call in host.calls if call.method.startswith("artifacts")]
    told = "(the picture cat.png cannot be shown: this model cannot look at pictures)"
    assert shown(asked[1])[-1]["content"].endswith(told)


async def test_pictures_beyond_what_a_question_carries_make_all_before_them_words() -> None:
    asked: list[Any] = []
    content = {name: b"\x89PNG" + name.encode() * (900 * 1024) for name in "abc"}
    calls = {"models.stream": wanting(asked, 3), "tools.call": painting(*"abc")}
    async with pretend_host(LocalAgent(), calls=calls, artifacts=content) as host:
        await host.run("paint", resources=resources(PAINT, window=400_000))
    assert counts(asked) == [0, 1, 2, 1]
    last = [text for text in texts(shown(asked[-1])) if "painted" in text]
    assert [text.count("cannot be shown: too much came after it") for text in last] == [1, 1, 0]


async def test_a_picture_too_large_for_any_question_is_named_and_never_read() -> None:
    asked: list[Any] = []
    calls = {"models.stream": demo(asked), "tools.call": painting("huge", size=3 * 1024 * 1024)}
    async with pretend_host(LocalAgent(), calls=calls) as host:
        results = await host.run("call paint {}", resources=resources(PAINT))
        assert not [call for call in host.calls if call.method.startswith("artifacts")]
    assert "it is too large: together at most 2097152 bytes are shown" in shown(asked[1])[-1]["content"]
    assert isinstance(results.terminal, RunCompleted)


async def test_pictures_count_as_they_do_for_users_and_give_way_before_words() -> None:
    asked: list[Any] = []
    content = {name: b"\x89PNG" + name.encode() for name in "abcd"}
    calls = {"models.stream": wanting(asked, 4), "tools.call": painting(*"abcd")}
    async with pretend_host(LocalAgent(), calls=calls, artifacts=content) as host:
        results = await host.run("paint", resources=resources(PAINT, window=4096))
    assert results.text == "done"
    assert all(tokens_of_all(shown(params)) < 3072 for params in asked)
    assert max(counts(asked)) * PICTURE < 3072
    assert counts(asked)[-1] > 0
    assert len([text for text in texts(shown(asked[-1])) if "painted" in text]) == 4


# --- told again in later turns


def an_item(seq: int, role: str, item_type: str, content: str, **more: Any) -> TranscriptItem:
    about = {"transcript_id": f"i{seq}", "event_id": f"e{seq}", "conversation_id": "c", "metadata": {"run_id": "r"}}
    return TranscriptItem.from_wire(
        {**about, "role": role, "item_type": item_type, "content": content, "seq": seq, "cursor": str(seq), **more}
    )


REF = {"artifact_id": "dog", "mime_type": "image/png", "name": "dog.png"}
TURN = [
    an_item(1, "user", "message", "look", attachment_refs=[REF]),
    an_item(2, "assistant", "tool_call", "paint", content_json={"tool_call_id": "c1", "tool_name": "paint"}),
    an_item(3, "tool", "tool_result", "", content_json={"tool_call_id": "c1", "result": a_result("cat")}),
]


def test_a_turn_is_told_again_with_its_pictures_and_counted_with_them() -> None:
    [turn] = turns_of([*TURN, an_item(4, "assistant", "message", "a dog and a cat")], agent_id=None)
    asked, _, result, _ = turn.messages
    assert [ref.artifact_id for ref in pictures_of(asked)] == ["dog"]
    assert result == result_message("c1", {"result": a_result("cat")})
    assert turn.tokens > 2 * PICTURE


def test_pictures_that_no_answer_followed_are_only_named_afterwards() -> None:
    [turn] = turns_of(TURN, agent_id=None)
    asked, _, result = turn.messages
    assert asked["content"] == "look\n(attached: dog.png, dog)"
    assert result["content"] == "painted\n(picture: cat.png, image/png, cat)"


def test_what_is_no_picture_is_named_with_the_reason() -> None:
    parts = [{"type": "file", "artifact_id": "f", "mime_type": "text/html", "problem": "it is no picture"}]
    said = result_message("c1", {"result": [*parts, {"type": "resource_link", "uri": "a://b"}]})
    assert said["content"] == '(file: text/html, f; it is no picture)\n{"type":"resource_link","uri":"a://b"}'
