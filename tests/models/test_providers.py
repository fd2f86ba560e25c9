"""Real providers' APIs, spoken to a scripted server: whole and streamed, tools, pictures, thoughts, usage."""

import json
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from model_server import ModelServer, Says, model_server
from paddock.models.catalog import ModelCatalog
from paddock.models.loading import load_models
from paddock.models.openai import ChatWire
from paddock.ports.models import CalledTool, Embedded, ModelAnswer, ModelCall, ModelPiece, Usage
from paddock.rules.agents.specs import ModelSpec
from paddock_sdk.protocol.messages import LLMTool, Message

pytestmark = pytest.mark.anyio

EXPECTED = Path(__file__).parent / "expected"
KEY = "sk-very-secret-0123456789"
APIS = ("openai", "openai_responses", "anthropic")
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
ADD = LLMTool(name="add", description="Add.", parameters={"type": "object", "properties": {"a": {"type": "number"}}})


@pytest.fixture(scope="module")
def running() -> Iterator[ModelServer]:
    with model_server() as server:
        yield server


@pytest.fixture
def server(running: ModelServer) -> ModelServer:
    return running.afresh()


def spec_for(api: str, server: ModelServer, **more: Any) -> ModelSpec:
    url = server.url.removesuffix("/v1") if api == "anthropic" else server.url
    about = {"provider": api, "model": "scripted", "base_url": url, "key": "env:TEST_KEY", "retries": 0}
    return ModelSpec.model_validate(about | more)


@pytest.fixture(params=APIS)
async def models(request: pytest.FixtureRequest, server: ModelServer) -> AsyncIterator[ModelCatalog]:
    catalog = load_models({"m": spec_for(request.param, server)}, clock=time.time, environ={"TEST_KEY": KEY})
    yield catalog
    await catalog.close()


def asking(*messages: dict[str, Any], model: str = "m", **more: Any) -> ModelCall:
    said = [Message.from_wire(message) for message in messages or ({"role": "user", "content": "hi"},)]
    about: dict[str, Any] = {"tools": (), "extra_args": {}, "workspace_id": "w", "user_id": "u", "run_id": "r"}
    return ModelCall(model, said, deadline_at=time.time() + 20, **{**about, **more})


async def streamed(models: ModelCatalog, call: ModelCall) -> tuple[ModelAnswer, list[ModelPiece]]:
    """The answer a stream adds up to, and its pieces."""
    pieces = [piece async for piece in models.stream(call)]
    last = pieces[-1]
    assert last.final
    assert not any(piece.final for piece in pieces[:-1])
    text = "".join(piece.content for piece in pieces)
    return ModelAnswer(text, tuple(last.tool_calls), last.finish_reason, last.extras, last.usage), pieces


@pytest.mark.parametrize(
    ("says", "finish"),
    [
        (Says("Good day to you, 世界。"), "stop"),
        (Says("Cut off", finish="length"), "length"),
        (Says("Let me see. ", calls=(("add", '{"a": 2, "b": 3}'), ("now", "{}"))), "tool_calls"),
        (Says(calls=(("add", '{"a": 1}'),)), "tool_calls"),
    ],
)
async def test_an_answer_is_the_same_whole_and_streamed(
    models: ModelCatalog, server: ModelServer, says: Says, finish: str
) -> None:
    server.says(says, says)
    whole = await models.invoke(asking(tools=[ADD]))
    told, pieces = await streamed(models, asking(tools=[ADD]))
    for answer in (whole, told):
        assert answer.content == says.text
        assert [(call.name, json.loads(call.arguments)) for call in answer.tool_calls] == [
            (name, json.loads(arguments)) for name, arguments in says.calls
        ]
        assert [call.call_id for call in answer.tool_calls] == [f"call_{at}" for at in range(len(says.calls))]
        assert answer.finish_reason == finish
        assert answer.usage == Usage(11, 7, 18)
    assert bool(says.words) < len(pieces) <= len(says.words) + 1  # words that came together stay together


LINES = (
    b'data: {"choices":[{"delta":{"content":"Good "}}]}',
    b": a remark",
    b'data: {"choices":[{"delta":{"content":"day"},"finish_reason":"stop"}]}',
    b'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}',
    b"data: [DONE]",
)


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
async def test_lines_may_end_in_either_way_and_what_is_not_added_up_is_added_up(
    server: ModelServer, end: bytes
) -> None:
    models = load_models({"m": spec_for("openai", server)}, clock=time.time, environ={"TEST_KEY": KEY})
    server.says(Says(rubbish=b"".join(line + end + end for line in LINES)))
    told, _ = await streamed(models, asking())
    assert (told.content, told.finish_reason, told.usage) == ("Good day", "stop", Usage(3, 2, 5))
    await models.close()


@pytest.mark.parametrize(
    ("more", "sent"),
    [
        ({}, {"max_tokens": 50}),
        ({"defaults": {"max_completion_tokens": 60}}, {"max_completion_tokens": 60}),
        ({"base_url": None}, {"max_completion_tokens": 50}),
    ],
)
def test_the_length_of_an_answer_is_limited_in_the_word_the_server_knows(
    server: ModelServer, more: dict[str, Any], sent: dict[str, int]
) -> None:
    spec = spec_for("openai", server, max_output_tokens=50, **more)
    asked = ChatWire().request(asking(), spec, stream=False)
    assert {name: value for name, value in asked.items() if name.startswith("max_")} == sent


async def test_a_tool_call_with_broken_arguments_comes_through_as_it_is(
    models: ModelCatalog, server: ModelServer
) -> None:
    server.says(Says(calls=(("add", '{"a": 1, "b'),)))
    told, _ = await streamed(models, asking(tools=[ADD]))
    assert told.tool_calls == (CalledTool("call_0", "add", '{"a": 1, "b'),)


async def test_thoughts_are_streamed_apart_and_go_back_with_the_message(
    models: ModelCatalog, server: ModelServer
) -> None:
    server.says(Says("Yes.", thinks="Hm, let me think."))
    told, pieces = await streamed(models, asking())
    assert "".join(piece.reasoning for piece in pieces) == "Hm, let me think."
    assert told.content == "Yes."
    again = {"role": "assistant", "content": "Yes.", "provider_specific_fields": dict(told.extras)}
    await models.invoke(asking({"role": "user", "content": "hi"}, again, {"role": "user", "content": "why?"}))
    sent = json.dumps(server.last)
    assert ("sealed" in sent or "signed" in sent) == bool(told.extras)


async def test_a_whole_conversation_is_sent_in_the_words_of_the_api(
    models: ModelCatalog, server: ModelServer, request: pytest.FixtureRequest
) -> None:
    api = request.node.callspec.params["models"]
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": [{"type": "text", "text": "Look:"}, {"type": "image_base64", "image_base64": PNG}]},
        {"role": "assistant", "content": "I see.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "2"},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.com/cat.png"}}]},
    ]
    await models.invoke(asking(*messages, tools=[ADD], extra_args={"temperature": 0.5}))
    expected = json.loads((EXPECTED / f"{api}.json").read_text().replace("PNG", PNG))
    assert server.last == expected


CALLS = [{"id": name, "type": "function", "function": {"name": "add", "arguments": "{}"}} for name in ("c1", "c2")]
CAT = [{"type": "text", "text": "a cat"}, {"type": "image_base64", "image_base64": PNG}]
ROUND: list[dict[str, Any]] = [
    {"role": "user", "content": "go"},
    {"role": "assistant", "content": "", "tool_calls": CALLS},
    {"role": "tool", "tool_call_id": "c1", "content": CAT},
    {"role": "tool", "tool_call_id": "c2", "content": "2"},
    {"role": "user", "content": "well?"},
]


async def test_a_picture_of_a_tool_is_where_the_provider_looks_for_it(
    models: ModelCatalog, server: ModelServer, request: pytest.FixtureRequest
) -> None:
    await models.invoke(asking(*ROUND, tools=[ADD]))
    url = f"data:image/png;base64,{PNG}"
    match request.node.callspec.params["models"]:
        case "openai":
            first, second, shown, asked = server.last["messages"][2:]
            assert first == {"role": "tool", "tool_call_id": "c1", "content": "a cat"}
            assert (second["role"], asked["content"]) == ("tool", "well?")
            words, picture = shown["content"]
            assert (shown["role"], words["type"]) == ("user", "text")
            assert picture == {"type": "image_url", "image_url": {"url": url}}
        case "openai_responses":
            first = next(item for item in server.last["input"] if item.get("call_id") == "c1" and "output" in item)
            assert first["output"] == [
                {"type": "input_text", "text": "a cat"},
                {"type": "input_image", "image_url": url},
            ]
        case _:
            first = server.last["messages"][2]["content"][0]
            source = {"type": "base64", "media_type": "image/png", "data": PNG}
            assert first == {
                "type": "tool_result",
                "tool_use_id": "c1",
                "content": [{"type": "text", "text": "a cat"}, {"type": "image", "source": source}],
            }


@pytest.mark.parametrize("api", APIS)
async def test_a_model_that_cannot_look_is_told_of_pictures_also_when_it_steps_in(
    server: ModelServer, api: str
) -> None:
    blind, seeing = spec_for(api, server, images=False), spec_for("openai", server, fallbacks=["blind"])
    models = load_models({"blind": blind, "m": seeing}, clock=time.time, environ={"TEST_KEY": KEY})
    server.says(Says(status=500), Says("I cannot see it."))
    await models.invoke(asking(*ROUND, tools=[ADD]))
    assert PNG in json.dumps(server.asked[0][2])
    sent = json.dumps(server.last)
    assert PNG not in sent
    assert "this model cannot look at pictures" in sent
    await models.close()


async def test_questions_one_after_the_other_share_a_connection(
    models: ModelCatalog, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paddock.models.remote.READ_OFF_SECONDS", 10.0)  # also on a machine that is busy
    for _ in range(3):
        await streamed(models, asking())
        await models.invoke(asking())
    assert len(server.asked) == 6
    assert len(server.connections) == 1


async def test_the_key_is_sent_where_the_provider_looks_for_it(models: ModelCatalog, server: ModelServer) -> None:
    await models.invoke(asking())
    headers = server.asked[-1][1]
    assert KEY in (headers.get("authorization", "") + headers.get("x-api-key", ""))


async def test_vectors_and_ranks_come_from_models_that_have_them(server: ModelServer) -> None:
    specs = {
        "e": spec_for("openai", server, type="embedding"),
        "r": spec_for("openai", server, type="rerank"),
    }
    models = load_models(specs, clock=time.time, environ={"TEST_KEY": KEY})
    embedded = await models.embed("w", "e", ["one", "three"], deadline_at=time.time() + 10)
    assert embedded == Embedded([[3.0, 1.0], [5.0, 1.0]], Usage(1, 0, 1))
    server.says(Says(ranking=((0, 0.1), (2, 0.9), (1, 0.5))))
    ranked = await models.rerank(asking(model="r"), "q", ["a", "b", "c"], 2)
    assert [(entry.index, entry.relevance_score) for entry in ranked.entries] == [(2, 0.9), (1, 0.5)]
    await models.close()
