"""How questions leave this machine: through the proxy of the environment, and large ones as well as small ones."""

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager

import anthropic
import openai
import pytest

from model_server import model_server
from models.test_providers import asking, spec_for
from paddock.models.anthropic import AnthropicModel
from paddock.models.connections import proxy_for
from paddock.models.loading import load_models
from paddock.models.openai import OpenAIChatModel
from paddock.models.remote import joined
from paddock.models.wire import ServerSaidError
from paddock.ports.models import ModelPiece

pytestmark = pytest.mark.anyio

ANSWER = b'{"choices":[{"message":{"content":"through a proxy"},"finish_reason":"stop"}]}'


@pytest.fixture
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return monkeypatch


@asynccontextmanager
async def proxy(heads: list[bytes]) -> AsyncGenerator[int]:
    """Answers everything itself, and notes what it was asked."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%s" % (len(ANSWER), ANSWER))
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


async def test_a_model_elsewhere_is_asked_through_the_proxy_of_the_environment(
    no_proxies: pytest.MonkeyPatch,
) -> None:
    heads: list[bytes] = []
    async with proxy(heads) as port:
        no_proxies.setenv("HTTP_PROXY", f"http://me:secret@127.0.0.1:{port}")
        with model_server() as server:
            spec = spec_for("openai", server, base_url="http://models.example/v1")
        models = load_models({"m": spec}, clock=time.time, environ={"TEST_KEY": "k"})
        assert (await models.invoke(asking())).content == "through a proxy"
        await models.close()
    assert heads[0].startswith(b"POST http://models.example/v1/chat/completions HTTP/1.1\r\n")
    assert b"proxy-authorization: basic bwu6c2vjcmv0" in heads[0].lower()


ACCOUNT = {"OPENAI_ORG_ID": "org-1", "OPENAI_PROJECT_ID": "proj-1"}


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_a_question_goes_where_the_providers_own_client_sends_it_and_says_who_asks_as_that_does(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in ACCOUNT.items():
        monkeypatch.setenv(name, value)
    with model_server() as server:
        models = load_models({"m": spec_for(provider, server)}, clock=time.time, environ={"TEST_KEY": "the-key"})
        await models.invoke(asking())
        sent = {name.lower(): value for name, value in server.asked[-1][1].items()}
        await models.close()
    if provider == "openai":
        library, ours = openai.AsyncOpenAI(api_key="the-key"), OpenAIChatModel.home
    else:
        library, ours = anthropic.AsyncAnthropic(api_key="the-key"), AnthropicModel.home
    assert ours == str(library.base_url).rstrip("/")
    said = {**library.auth_headers, **library.default_headers}
    told = {name.lower(): value for name, value in said.items() if isinstance(value, str) and not _of_the_library(name)}
    assert told.keys() >= {"content-type", "accept"}
    assert told.items() <= sent.items()


def _of_the_library(header: str) -> bool:
    return header.lower().startswith(("x-stainless", "user-agent"))


@pytest.mark.parametrize(("provider", "variable"), [("openai", "OPENAI_BASE_URL"), ("anthropic", "ANTHROPIC_BASE_URL")])
async def test_the_environment_may_name_another_address_for_a_provider(
    provider: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with model_server() as server:
        there = spec_for(provider, server)
        monkeypatch.setenv(variable, str(there.base_url))
        models = load_models(
            {"m": there.model_copy(update={"base_url": None})}, clock=time.time, environ={"TEST_KEY": "k"}
        )
        await models.invoke(asking())
        assert server.asked
        await models.close()


async def test_a_server_of_ones_own_that_wants_no_key_is_sent_none_and_headers_of_the_settings_win() -> None:
    with model_server() as server:
        spec = spec_for("openai", server, key=None, headers={"accept": "text/plain"})
        models = load_models({"m": spec}, clock=time.time, environ={})
        await models.invoke(asking())
        sent = {name.lower(): value for name, value in server.asked[-1][1].items()}
        await models.close()
    assert "authorization" not in sent
    assert sent["accept"] == "text/plain"


def test_an_address_that_wants_no_proxy_gets_none(no_proxies: pytest.MonkeyPatch) -> None:
    no_proxies.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    no_proxies.setenv("NO_PROXY", "inside.example")
    assert proxy_for("http://models.example/v1") == ({}, {})
    assert proxy_for("https://inside.example/v1") == ({}, {})
    assert str(proxy_for("https://models.example/v1")[0]["proxy"]) == "http://127.0.0.1:9"


async def test_a_question_of_megabytes_arrives_whole() -> None:
    with model_server() as server:
        models = load_models({"m": spec_for("openai", server)}, clock=time.time, environ={"TEST_KEY": "k"})
        await models.invoke(asking({"role": "user", "content": "long " * 500_000}))
        await models.close()
        assert len(server.last["messages"][0]["content"]) == 2_500_000


def test_words_that_came_together_go_on_together_and_thoughts_stay_apart() -> None:
    came = [ModelPiece("a "), None, ModelPiece("b "), ModelPiece("", "hm"), ModelPiece("c")]
    assert list(joined(came)) == [ModelPiece("a b "), ModelPiece("", "hm"), ModelPiece("c")]


def test_what_was_said_before_an_error_is_said() -> None:
    def came() -> Iterator[ModelPiece]:
        yield ModelPiece("a ")
        yield ModelPiece("b")
        raise ServerSaidError("no more")

    pieces = joined(came())
    assert next(pieces) == ModelPiece("a b")
    with pytest.raises(ServerSaidError):
        next(pieces)
