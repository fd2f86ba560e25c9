"""What is asked of a model counts for whoever asked, however the answer ends, and no answer is without an end."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from contracts.test_calls import ended_in
from grants import a_grant
from paddock.host.calls.metering import Metering
from paddock.host.calls.models import ModelCalls
from paddock.models import remote
from paddock.models.catalog import ModelCatalog
from paddock.models.loading import load_models
from paddock.rules.agents.specs import ModelSpec
from paddock.rules.errors import HostError
from paddock.rules.rows.calls import ModelUsageRow
from paddock_sdk.protocol.host_calls import ModelsInvokeParams, ModelsRerankParams

pytestmark = pytest.mark.anyio

ALL = frozenset({"invoke", "stream", "rerank"})
QUESTION = "four letters a token" * 20
ASKED = len(QUESTION) // 4
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


async def says_nothing(_: asyncio.StreamWriter) -> None:
    await asyncio.sleep(60)


async def breaks_off(writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD.replace(b"Connection: close", b"Content-Length: 1000") + b": it thinks\n\n")
    await writer.drain()


def said(event: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(event).encode() + b"\n\n"


ARGUMENTS = "a" * 4000
TOOL_CALLS: Mapping[str, bytes] = {
    "openai": said(
        {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": ARGUMENTS}}]}}]}
    ),
    "openai_responses": said({"type": "response.function_call_arguments.delta", "delta": ARGUMENTS}),
    "anthropic": said(
        {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "1", "name": "f"}}
    )
    + said(
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "input_json_delta", "partial_json": ARGUMENTS},
        }
    ),
}
"""The beginning of a call of a tool, which is told when it is whole."""


def stays_at(piece: bytes) -> Answer:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + piece)
        await writer.drain()
        await asyncio.sleep(60)

    return answer


def never_ends(beginning: bytes) -> Answer:
    *_, last, nothing = beginning.split(b"\n\n")

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + beginning)
        while True:
            writer.write(last + b"\n\n" + nothing)
            await writer.drain()

    return answer


class Provider:
    """Takes a question whole, and answers as it likes."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.asked = 0
        self.url = ""

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(int(length.partition(b":")[2]))
            self.asked += 1
            await self._answer(writer)
        writer.close()


@asynccontextmanager
async def asking(
    answer: Answer, api: str = "openai", **more: Any
) -> AsyncGenerator[tuple[ModelCalls, list[ModelUsageRow], Provider]]:
    provider, noted = Provider(answer), list[ModelUsageRow]()
    server = await asyncio.start_server(provider.take, "127.0.0.1", 0)
    port: int = server.sockets[0].getsockname()[1]
    about = {"provider": api, "model": "m", "base_url": f"http://127.0.0.1:{port}", "key": "env:TEST_KEY", **more}
    catalog: ModelCatalog = load_models(
        {"m": ModelSpec.model_validate(about)}, clock=time.time, environ={"TEST_KEY": "k"}
    )
    yield ModelCalls(catalog, Metering(catalog, note=ended_in(noted), clock=time.time)), noted, provider
    await catalog.close()
    server.close()


def question() -> ModelsInvokeParams:
    messages = [{"role": "user", "content": QUESTION}]
    return ModelsInvokeParams.model_validate({"run_id": "run-1", "model_id": "m", "messages": messages})


async def heard(calls: ModelCalls, *, stream: bool, seconds: float = 60) -> None:
    grant = a_grant(models={"m": ALL}, deadline_at=time.time() + seconds)
    with suppress(HostError):
        if stream:
            async for _ in calls.stream(grant, question()):
                pass
        else:
            await calls.invoke(grant, question())


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("answer", [says_nothing, breaks_off], ids=lambda answer: answer.__name__)
async def test_every_try_that_went_out_counts_though_nobody_answered_in_time(answer: Answer, stream: bool) -> None:
    async with asking(answer, timeout_seconds=0.2, retries=2) as (calls, noted, provider):
        await heard(calls, stream=stream)
        (row,) = noted
        assert provider.asked == 3
        assert row.estimated
        assert (row.prompt_tokens or 0) >= 3 * ASKED


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
async def test_a_question_counts_that_was_given_up_at_the_runs_deadline(stream: bool) -> None:
    async with asking(says_nothing) as (calls, noted, provider):
        await heard(calls, stream=stream, seconds=2)
        (row,) = noted
        assert (provider.asked, row.estimated, (row.prompt_tokens or 0) >= ASKED) == (1, True, True)


@pytest.mark.parametrize("api", TOOL_CALLS)
async def test_half_a_tool_call_counts_when_its_stream_is_stopped(api: str) -> None:
    async with asking(stays_at(TOOL_CALLS[api]), api) as (calls, noted, _):
        task = asyncio.create_task(heard(calls, stream=True))
        await asyncio.sleep(0.5)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        (row,) = noted
        assert (row.result, row.estimated) == ("cancelled", True)
        assert (row.completion_tokens or 0) >= len(ARGUMENTS) // 4


async def test_a_provider_that_was_not_reached_or_refused_costs_nothing() -> None:
    async def refuses(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()

    async with asking(refuses, retries=0) as (calls, noted, _):
        await heard(calls, stream=True)
        await heard(calls, stream=False)
        assert [(row.total_tokens, row.estimated) for row in noted] == [(None, False)] * 2


async def test_what_was_used_by_ranks_and_vectors_that_never_came_counts_too() -> None:
    async with asking(says_nothing, type="rerank", timeout_seconds=0.2, retries=1) as (calls, noted, provider):
        asked = {"run_id": "run-1", "model_id": "m", "query": QUESTION, "documents": [QUESTION]}
        with suppress(HostError):
            grant = a_grant(models={"m": ALL}, deadline_at=time.time() + 60)
            await calls.rerank(grant, ModelsRerankParams.model_validate(asked))
        assert (provider.asked, noted[0].prompt_tokens or 0) == (2, 4 * ASKED)


@pytest.mark.parametrize("api", TOOL_CALLS)
async def test_an_answer_without_end_is_left(api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "MAX_ANSWER_BYTES", 1024 * 1024)
    async with asking(never_ends(TOOL_CALLS[api]), api, retries=0) as (calls, noted, _):
        async with asyncio.timeout(20):
            await heard(calls, stream=True)
        (row,) = noted
        assert row.result == "runtime_error"
        assert (row.completion_tokens or 0) > 100_000


async def test_answers_are_not_unpacked() -> None:
    heads = list[bytes]()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    spec = {"provider": "openai", "model": "m", "base_url": f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"}
    catalog = load_models({"m": ModelSpec.model_validate({**spec, "retries": 0})}, clock=time.time, environ={})
    calls = ModelCalls(catalog, Metering(catalog, note=lambda _: None, clock=time.time))
    await heard(calls, stream=False)
    await catalog.close()
    server.close()
    assert b"accept-encoding: identity" in heads[0].lower()
