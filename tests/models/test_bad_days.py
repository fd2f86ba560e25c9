"""A provider that is down, slow, angry or mad: each is one clear sentence, nothing hangs, and no key gets out."""

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest

from model_server import ModelServer, Says, model_server
from models.test_providers import APIS, KEY, asking, spec_for
from paddock.models import remote
from paddock.models.catalog import ModelCatalog
from paddock.models.loading import load_models
from paddock.rules.agents.specs import ModelSpec
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.run.restart import pause_before
from paddock.rules.values import replace
from patience import at_most

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def running() -> Iterator[ModelServer]:
    with model_server() as server:
        yield server


@pytest.fixture
def server(running: ModelServer) -> ModelServer:
    return running.afresh()


def catalog_of(server: ModelServer, api: str = "openai", **more: Any) -> ModelCatalog:
    return load_models({"m": spec_for(api, server, **more)}, clock=time.time, environ={"TEST_KEY": KEY})


async def failure_of(models: ModelCatalog, *, stream: bool, **more: Any) -> tuple[HostError, str]:
    """How asking fails, and what was said before it did."""
    said: list[str] = []

    async def ask() -> None:
        if stream:
            async for piece in models.stream(asking(**more)):
                said.append(piece.content)  # noqa: PERF401 - what came before a failure counts
        else:
            await models.invoke(asking(**more))

    with pytest.raises(HostError) as failed:
        await ask()
    await models.close()
    assert KEY not in failed.value.message
    assert KEY not in repr(failed.value.details)
    return failed.value, "".join(said)


BAD = [
    (Says(status=401, error=f"Incorrect API key: {KEY}"), ErrorCode.RUNTIME_ERROR, False, "refused its key"),
    (Says(status=402, error="no credit"), ErrorCode.RUNTIME_ERROR, False, "wants to be paid first"),
    (Says(status=404, error="no such model"), ErrorCode.RUNTIME_ERROR, False, "does not know it"),
    (Says(status=400, error="temperature too hot"), ErrorCode.INVALID_ARGUMENT, False, "temperature too hot"),
    (Says(status=413, error="long"), ErrorCode.PAYLOAD_TOO_LARGE, False, "too large"),
    (Says(status=429, error="slow down"), ErrorCode.RATE_LIMITED, True, "wants fewer questions"),
    (Says(status=500, error="oops"), ErrorCode.RUNTIME_ERROR, True, "failed with status 500"),
    (Says(status=529, error="busy"), ErrorCode.RUNTIME_ERROR, True, "status 529"),
    (Says(rubbish=b"<html>hello</html>"), ErrorCode.RUNTIME_ERROR, True, "not its API"),
    (Says(rubbish=b"data: {]}\n\n"), ErrorCode.RUNTIME_ERROR, True, "not its API"),
    (Says(rubbish=b""), ErrorCode.RUNTIME_ERROR, True, "provider of the model 'm'"),
]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize(("says", "code", "retryable", "words"), BAD, ids=[f"{n}" for n in range(len(BAD))])
async def test_what_a_provider_refuses_is_one_clear_sentence(
    server: ModelServer, api: str, stream: bool, says: Says, code: ErrorCode, retryable: bool, words: str
) -> None:
    error, said = await failure_of(catalog_of(server.says(says), api), stream=stream)
    assert (error.code, error.retryable, said) == (code, retryable, "")
    assert words in error.message
    if says.status not in (200, 400, 413):  # words about the question are for whoever asked it
        assert says.error not in error.message
        assert says.error.replace(KEY, "***") in error.for_operators
    assert len(server.asked) == 1


@pytest.mark.parametrize("api", APIS)
async def test_half_a_stream_is_said_to_be_broken_off_and_never_asked_again(server: ModelServer, api: str) -> None:
    server.says(Says("one two three four five six", cut_after=6))
    error, said = await failure_of(catalog_of(server, api, retries=2), stream=True)
    assert "broke off" in error.message
    assert "one two" in said
    assert len(server.asked) == 1


@pytest.mark.parametrize("api", APIS)
async def test_a_stream_that_ends_without_its_end_is_broken_off_too(server: ModelServer, api: str) -> None:
    frames = {
        "openai": b'data: {"choices":[{"delta":{"content":"one "}}]}\n\n',
        "openai_responses": b'data: {"type":"response.output_text.delta","delta":"one "}\n\n',
        "anthropic": b'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"one "}}\n\n',
    }
    error, said = await failure_of(catalog_of(server.says(Says(rubbish=frames[api])), api), stream=True)
    assert ("broke off" in error.message, said) == (True, "one ")


@pytest.mark.parametrize("api", APIS)
async def test_an_error_in_the_middle_of_a_stream_is_told(server: ModelServer, api: str) -> None:
    server.says(Says("one two three four five", fail_after=6, error=f"overloaded {KEY}"))
    error, said = await failure_of(catalog_of(server, api), stream=True)
    assert "overloaded" not in error.message
    assert "overloaded ***" in error.for_operators
    assert said.startswith("one")


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
async def test_a_silent_provider_is_given_up_after_its_time(server: ModelServer, stream: bool) -> None:
    models = catalog_of(server.says(Says(silent=True)), timeout_seconds=0.2)
    error, _ = await failure_of(models, stream=stream)
    assert "said nothing for 0.2 seconds" in error.message


async def test_no_wait_is_longer_than_the_run(server: ModelServer) -> None:
    call = replace(asking(), deadline_at=time.time() + 0.3)
    models = catalog_of(server.says(Says(silent=True)), retries=3)
    began = time.monotonic()
    with pytest.raises(HostError):
        await models.invoke(call)
    assert time.monotonic() - began < at_most(1)
    await models.close()


async def test_a_provider_that_is_not_there_is_named_with_its_address_to_operators(server: ModelServer) -> None:
    models = load_models(
        {"m": spec_for("openai", server, base_url="http://127.0.0.1:9/v1")}, clock=time.time, environ={"TEST_KEY": KEY}
    )
    error, _ = await failure_of(models, stream=True)
    assert error.message.endswith("cannot be reached")
    assert "cannot be reached at http://127.0.0.1:9/v1" in error.for_operators


async def test_a_missing_key_names_the_variable_to_set_to_operators_and_nothing_is_sent(server: ModelServer) -> None:
    models = load_models({"m": spec_for("openai", server)}, clock=time.time, environ={})
    error, _ = await failure_of(models, stream=False)
    assert "the environment variable TEST_KEY is not set" in error.for_operators
    assert "TEST_KEY" not in error.message
    assert server.asked == []


async def test_a_missing_key_of_the_usual_name_is_told_to_everybody() -> None:
    models = load_models({"m": ModelSpec(provider="openai")}, clock=time.time, environ={})
    error, _ = await failure_of(models, stream=False)
    assert "the environment variable OPENAI_API_KEY is not set" in error.message


async def test_a_failure_before_the_first_piece_is_tried_again(server: ModelServer) -> None:
    server.says(Says(status=500), Says(status=429, headers={"retry-after-ms": "10"}), Says("third time lucky"))
    models = catalog_of(server, retries=2)
    assert "".join([piece.content async for piece in models.stream(asking())]) == "third time lucky"
    assert len(server.asked) == 3
    await models.close()


async def test_vectors_and_ranks_are_asked_for_again_too(server: ModelServer) -> None:
    busy = Says(status=429, headers={"retry-after-ms": "10"})
    server.says(busy, Says(vectors=((1.0, 0.0),)))
    models = catalog_of(server, type="embedding", retries=1)
    assert (await models.embed("w", "m", ["text"], deadline_at=time.time() + 20)).vectors == [[1.0, 0.0]]
    await models.close()
    server.says(busy, Says(ranking=((0, 0.5),)))
    models = catalog_of(server, type="rerank", retries=1)
    assert [one.index for one in (await models.rerank(asking(), "q", ["d"], None)).entries] == [0]
    await models.close()
    server.says(busy, busy)
    models = catalog_of(server, type="embedding", retries=1)
    with pytest.raises(HostError, match="wants fewer questions"):
        await models.embed("w", "m", ["text"], deadline_at=time.time() + 20)
    await models.close()


async def test_a_wrong_question_is_not_asked_twice(server: ModelServer) -> None:
    server.says(Says(status=400))
    error, _ = await failure_of(catalog_of(server, retries=3), stream=False)
    assert error.code is ErrorCode.INVALID_ARGUMENT
    assert len(server.asked) == 1


async def test_another_model_steps_in_and_is_named_as_the_one_who_answered(server: ModelServer) -> None:
    specs = {
        "m": spec_for("openai", server, fallbacks=["second", "demo"]),
        "second": spec_for("anthropic", server),
    }
    models = load_models(specs, clock=time.time, environ={"TEST_KEY": KEY})
    server.says(Says(status=500), Says("from the second"))
    pieces = [piece async for piece in models.stream(asking())]
    assert "".join(piece.content for piece in pieces) == "from the second"
    assert pieces[-1].answered_by == "second"
    server.says(Says(status=401), Says(status=402))
    answer = await models.invoke(asking({"role": "user", "content": "hello"}))
    assert (answer.answered_by, answer.content[:5]) == ("demo", "Hello")
    await models.close()


@pytest.mark.parametrize("api", APIS)
async def test_leaving_a_stream_closes_the_connection_to_the_provider(server: ModelServer, api: str) -> None:
    server.says(Says("word " * 1000, pause=0.01))
    models = catalog_of(server, api)
    stream: Any = models.stream(asking())
    assert (await anext(stream)).content
    await stream.aclose()
    assert await asyncio.to_thread(server.left.wait, 30)
    await models.close()


async def test_cancelling_a_question_closes_the_connection_too(server: ModelServer) -> None:
    models = catalog_of(server.says(Says(silent=True)))
    asked = asyncio.create_task(models.invoke(asking()))
    while not server.asked:
        await asyncio.sleep(0.01)
    asked.cancel()
    await asyncio.gather(asked, return_exceptions=True)
    assert await asyncio.to_thread(server.left.wait, 30)
    await models.close()


async def test_at_most_so_many_questions_are_asked_at_once(server: ModelServer) -> None:
    server.otherwise = Says("done", pause=0.02)
    models = catalog_of(server, max_concurrency=2)
    most = 0

    async def ask() -> None:
        nonlocal most
        async for _ in models.stream(asking()):
            most = max(most, len(server.asked) - done.count(1))
        done.append(1)

    done: list[int] = []
    await asyncio.gather(*(ask() for _ in range(6)))
    assert len(done) == 6
    assert most <= 2
    await models.close()


def _heard(server: ModelServer, count: int) -> Any:
    async def wait() -> None:
        async with asyncio.timeout(30):
            while len(server.asked) < count:
                await asyncio.sleep(0.005)

    return wait()


def _asked_of(server: ModelServer, word: str) -> int:
    """At which place a question with this word was asked."""
    return next(place for place, (_, _, body) in enumerate(server.asked) if word in str(body))


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
async def test_a_workspace_with_many_questions_delays_anothers_by_one_turn(server: ModelServer, stream: bool) -> None:
    server.otherwise = Says("done at last", pause=0.01)
    models = catalog_of(server, max_concurrency=1)

    async def ask(workspace: str) -> None:
        call = asking({"role": "user", "content": workspace}, workspace_id=workspace)
        if stream:
            async for _ in models.stream(call):
                pass
        else:
            await models.invoke(call)

    async with asyncio.TaskGroup() as group:
        for _ in range(12):
            group.create_task(ask("loud"))
        await _heard(server, 1)
        before = len(server.asked)
        group.create_task(ask("quiet"))
    assert len(server.asked) == 13
    assert _asked_of(server, "quiet") <= before + 3  # of 12
    await models.close()


async def test_documents_of_one_workspace_take_their_turn_at_a_model_of_vectors(server: ModelServer) -> None:
    models = catalog_of(server, type="embedding", max_concurrency=1)

    async def embed(workspace: str) -> None:
        await models.embed(workspace, "m", [workspace], deadline_at=time.time() + 30)

    async with asyncio.TaskGroup() as group:
        for _ in range(12):
            group.create_task(embed("loud"))
        await _heard(server, 1)
        before = len(server.asked)
        group.create_task(embed("quiet"))
    assert _asked_of(server, "quiet") <= before + 3  # of 12
    await models.close()


async def test_one_workspace_never_has_every_slot_of_a_model_that_others_use_too(server: ModelServer) -> None:
    models = catalog_of(server, max_concurrency=2)
    await models.invoke(asking(workspace_id="quiet"))
    server.rule = lambda body: Says(silent=True) if "loud" in str(body) else None
    loud = asking({"role": "user", "content": "loud"}, workspace_id="loud")
    holding = [asyncio.create_task(models.invoke(loud)) for _ in range(5)]
    await _heard(server, 2)
    async with asyncio.timeout(30):
        await models.invoke(asking(workspace_id="quiet"))
    assert not any(task.done() for task in holding)
    for task in holding:
        task.cancel()
    await asyncio.wait(holding)
    await models.close()


async def test_questions_that_wait_are_bounded_and_wait_no_longer_than_they_may(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "WAITING", 1)
    server.otherwise = Says(silent=True)
    models = catalog_of(server, max_concurrency=1, timeout_seconds=1.0)
    holding = asyncio.create_task(models.invoke(asking()))
    await _heard(server, 1)
    waiting = asyncio.create_task(models.invoke(asking()))
    await asyncio.sleep(0)
    with pytest.raises(HostError, match="too many") as refused:
        await models.invoke(asking())
    assert (refused.value.code, refused.value.retryable) == (ErrorCode.RATE_LIMITED, True)
    with pytest.raises(HostError) as ended:
        async with asyncio.timeout(30):
            await waiting
    assert ended.value.retryable
    holding.cancel()
    await asyncio.wait([holding])
    await models.close()


async def test_a_question_that_gets_no_turn_in_its_time_is_told_so(server: ModelServer) -> None:
    server.otherwise = Says("word " * 200, pause=0.01)
    models = catalog_of(server, max_concurrency=1)
    stream: Any = models.stream(asking())
    await anext(stream)
    with pytest.raises(HostError, match="busy with other questions") as late:
        async with asyncio.timeout(30):
            await models.invoke(replace(asking(), deadline_at=time.time() + 0.3))
    assert (late.value.code, late.value.retryable) == (ErrorCode.RATE_LIMITED, True)
    assert len(server.asked) == 1
    await stream.aclose()
    await models.close()


def test_waits_double_obey_the_provider_and_end_with_the_run() -> None:
    assert [pause_before(n, retries=3, asked_for=None, seconds_left=60) for n in range(4)] == [0.5, 1.0, 2.0, None]
    assert pause_before(0, retries=3, asked_for=7.0, seconds_left=60) == 7.0
    assert pause_before(0, retries=3, asked_for=70.0, seconds_left=600) is None
    assert pause_before(0, retries=3, asked_for=None, seconds_left=0.4) is None
