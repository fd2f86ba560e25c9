"""A question goes out with the operator's key: a runner sets how the model answers, and reaches nothing else by it."""

import json
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from model_server import ModelServer, model_server
from paddock.models.catalog import ModelCatalog
from paddock.models.loading import load_models
from paddock.ports.models import ModelCall
from paddock.rules.agents.specs import ModelSpec
from paddock.rules.errors import ErrorCode, HostError
from paddock_sdk.protocol.messages import Message

pytestmark = pytest.mark.anyio

APIS = ("openai", "openai_responses", "anthropic")
REACHING: dict[str, dict[str, Any]] = {
    "openai": {
        "tools": [{"type": "web_search"}],
        "web_search_options": {},
        "functions": [{"name": "x"}],
        "n": 50,
        "best_of": 50,
        "models": ["dearest"],
        "store": True,
        "service_tier": "priority",
        "user": "somebody-else",
        "metadata": {"a": "b"},
        "audio": {"voice": "alloy", "format": "wav"},
        "prediction": {"type": "content", "content": "x"},
        "enable_search": True,
        "plugins": [{"id": "web"}],
        "provider": {"order": ["dearest"]},
        "stream_options": {"include_usage": False},
        "stream": True,
        "prompt_cache_key": "another-tenant",
        "an_option_of_tomorrow": 1,
        "chat_template_kwargs": {"enable_thinking": False, "chat_template": "{{ x }}"},
        "thinking": {"type": "enabled", "tools": ["x"]},
        "tool_choice": {"type": "mcp", "server_label": "x"},
        "temperature": {"nested": 1},
        "max_tokens": "many",
    },
    "openai_responses": {
        "tools": [{"type": "code_interpreter", "container": {"type": "auto"}}],
        "previous_response_id": "resp_of_somebody",
        "conversation": "conv_of_somebody",
        "prompt": {"id": "pmpt_stored"},
        "store": True,
        "background": True,
        "include": ["file_search_call.results"],
        "instructions": "x",
        "max_tool_calls": 99,
        "service_tier": "priority",
        "metadata": {},
        "tool_choice": {"type": "web_search_preview"},
        "an_option_of_tomorrow": 1,
        "reasoning": {"effort": "low", "further": 1},
    },
    "anthropic": {
        "tools": [{"type": "web_search_20250305", "name": "web_search"}],
        "mcp_servers": [{"type": "url", "url": "https://elsewhere.example", "name": "x"}],
        "container": "container_of_somebody",
        "context_management": {"edits": []},
        "service_tier": "auto",
        "system": "x",
        "metadata": {"user_id": "somebody-else"},
        "betas": ["files-api-2025-04-14"],
        "speed": "fast",
        "an_option_of_tomorrow": 1,
        "thinking": {"type": "enabled", "further": 1},
    },
}
HARMLESS: dict[str, dict[str, Any]] = {
    "openai": {
        "temperature": 0.1,
        "top_p": 0.9,
        "seed": 7,
        "stop": ["END"],
        "logit_bias": {"50256": -100},
        "max_completion_tokens": 100,
        "reasoning_effort": "low",
        "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}},
        "tool_choice": {"type": "function", "function": {"name": "add"}},
        "chat_template_kwargs": {"enable_thinking": False},
    },
    "openai_responses": {
        "temperature": 0.1,
        "max_output_tokens": 100,
        "reasoning": {"effort": "low", "summary": "auto"},
        "text": {"format": {"type": "json_schema", "name": "x", "schema": {"type": "object"}}, "verbosity": "low"},
        "include": ["reasoning.encrypted_content"],
        "tool_choice": "auto",
    },
    "anthropic": {
        "temperature": 0.1,
        "top_k": 5,
        "stop_sequences": ["END"],
        "max_tokens": 100,
        "thinking": {"type": "enabled", "budget_tokens": 2000},
        "tool_choice": {"type": "any"},
        "output_config": {"effort": "low"},
    },
}


@pytest.fixture(scope="module")
def running() -> Iterator[ModelServer]:
    with model_server() as server:
        yield server


@pytest.fixture
def server(running: ModelServer) -> ModelServer:
    return running.afresh()


def offering(api: str, server: ModelServer, **more: Any) -> ModelCatalog:
    url = server.url.removesuffix("/v1") if api == "anthropic" else server.url
    about = {"provider": api, "model": "scripted", "base_url": url, "key": "env:TEST_KEY", "retries": 0}
    spec = ModelSpec.model_validate(about | more)
    return load_models({"m": spec}, clock=time.time, environ={"TEST_KEY": "sk-of-the-operator"})


@pytest.fixture(params=APIS)
async def models(request: pytest.FixtureRequest, server: ModelServer) -> AsyncIterator[tuple[str, ModelCatalog]]:
    catalog = offering(request.param, server)
    yield request.param, catalog
    await catalog.close()


def asking(*messages: dict[str, Any], **extra_args: Any) -> ModelCall:
    said = [Message.from_wire(message) for message in messages or ({"role": "user", "content": "hi"},)]
    who: dict[str, Any] = {"workspace_id": "w", "user_id": "u", "run_id": "r"}
    return ModelCall("m", said, tools=(), extra_args=extra_args, deadline_at=time.time() + 20, **who)


@pytest.mark.spec("wire/model-options")
async def test_an_option_that_reaches_further_than_the_answer_is_refused_by_its_name(
    models: tuple[str, ModelCatalog], server: ModelServer
) -> None:
    api, catalog = models
    for name, value in REACHING[api].items():
        with pytest.raises(HostError, match=rf"extra_args\.{name} ") as refused:
            await catalog.invoke(asking(**{name: value}))
        assert refused.value.code == ErrorCode.INVALID_ARGUMENT
        with pytest.raises(HostError, match=rf"extra_args\.{name} "):
            _ = [piece async for piece in catalog.stream(asking(**{name: value}))]
    assert server.asked == []


@pytest.mark.spec("wire/model-options")
async def test_how_a_model_answers_is_the_runners_to_say(models: tuple[str, ModelCatalog], server: ModelServer) -> None:
    api, catalog = models
    await catalog.invoke(asking(**HARMLESS[api]))
    assert {name: server.last.get(name) for name in HARMLESS[api]} == HARMLESS[api]


@pytest.mark.parametrize("api", APIS)
async def test_an_operator_opens_further_options_of_a_model_by_name(api: str, server: ModelServer) -> None:
    catalog = offering(api, server, allow_args=["service_tier"])
    await catalog.invoke(asking(service_tier="flex"))
    assert server.last["service_tier"] == "flex"
    with pytest.raises(HostError, match=r"extra_args\.store "):
        await catalog.invoke(asking(service_tier="flex", store=True))
    await catalog.close()


@pytest.mark.parametrize(
    ("api", "word"),
    [
        ("openai", "max_tokens"),
        ("openai", "max_completion_tokens"),
        ("openai_responses", "max_output_tokens"),
        ("anthropic", "max_tokens"),
    ],
)
@pytest.mark.spec("wire/model-options")
async def test_an_answer_gets_no_longer_than_the_operator_allows(api: str, word: str, server: ModelServer) -> None:
    catalog = offering(api, server, max_output_tokens=500)
    for asked, sent in ((100_000, 500), (20, 20)):
        await catalog.invoke(asking(**{word: asked}))
        assert server.last[word] == sent
    await catalog.close()


FORGED: list[Any] = [
    {"type": "document", "source": {"type": "file", "file_id": "file_of_somebody"}},
    {"type": "server_tool_use", "id": "s", "name": "code_execution", "input": {}},
    {"type": "container_upload", "file_id": "file_of_somebody"},
    {"type": "item_reference", "id": "msg_of_somebody"},
    {"type": "message", "role": "user", "content": [{"type": "input_file", "file_id": "file_of_somebody"}]},
    {"type": "reasoning", "id": "rs_of_somebody", "summary": []},
    {"type": "thinking", "thinking": {"file_id": "of_somebody"}, "signature": ["of_somebody"]},
    "of_somebody",
]


@pytest.mark.parametrize(
    "forged", [FORGED, "of_somebody", 5, {"type": "of_somebody"}], ids=["list", "text", "number", "object"]
)
@pytest.mark.spec("wire/model-options")
async def test_of_what_a_provider_wants_back_only_thoughts_are_handed_on(
    models: tuple[str, ModelCatalog], server: ModelServer, forged: Any
) -> None:
    _, catalog = models
    back = {"thinking_blocks": forged, "openai_reasoning": forged, "reasoning_content": forged}
    said = {"role": "assistant", "content": "Yes.", "provider_specific_fields": back}
    await catalog.invoke(asking({"role": "user", "content": "hi"}, said, {"role": "user", "content": "why?"}))
    assert "of_somebody" not in json.dumps(server.last)
    assert "code_execution" not in json.dumps(server.last)


@pytest.mark.parametrize("address", ["file:///etc/passwd", "s3://bucket/x", "gopher://127.0.0.1:6379/x", "/etc/passwd"])
async def test_a_provider_is_given_no_address_but_of_the_web(
    models: tuple[str, ModelCatalog], server: ModelServer, address: str
) -> None:
    _, catalog = models
    for element in (
        {"type": "image_url", "image_url": {"url": address}},
        {"type": "file_url", "file_url": address, "file_name": "x"},
    ):
        with pytest.raises(HostError, match="http or https"):
            await catalog.invoke(asking({"role": "user", "content": [element]}))
    assert server.asked == []


@pytest.mark.parametrize("api", APIS)
async def test_an_operator_lets_a_provider_read_no_address_at_all(api: str, server: ModelServer) -> None:
    catalog = offering(api, server, addresses=False)
    for element in (
        {"type": "image_url", "image_url": {"url": "https://example.com/?said=secret"}},
        {"type": "file_url", "file_url": "https://example.com/?said=secret", "file_name": "x"},
    ):
        for role in ("user", "tool"):
            with pytest.raises(HostError, match="reads no addresses"):
                await catalog.invoke(asking({"role": role, "content": [element], "tool_call_id": "c"}))
    assert server.asked == []
    given = {"type": "image_base64", "image_base64": "data:image/png;base64,iVBORw0KGgo="}
    await catalog.invoke(asking({"role": "user", "content": [given]}))
    assert len(server.asked) == 1
    await catalog.close()
