"""Models on behalf of a run: only the granted ones, within the run's time, and every call says what it used."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from contracts.test_calls import ended_in
from grants import a_grant
from paddock.host.calls.metering import Metering
from paddock.host.calls.models import ModelCalls
from paddock.models.catalog import ModelCatalog
from paddock.models.demo import DemoModel
from paddock.ports.models import ModelAnswer, ModelCall, ModelPiece, Usage
from paddock.rules.agents.resources import Prices
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.calls import ModelUsageRow
from paddock.rules.values import replace
from paddock_sdk.protocol.host_calls import (
    ModelsInvokeParams,
    ModelsRerankParams,
    ModelsStreamChunk,
    ModelsStreamResult,
)

pytestmark = pytest.mark.anyio

ALL = frozenset({"invoke", "stream", "rerank"})
GRANT = a_grant(models={"demo": ALL, "gone": ALL, "slow": ALL})


class SlowModel(DemoModel):
    """Answers never, and tells when it is closed."""

    info = replace(DemoModel.info, model_id="slow", prices=Prices(1_000_000, 2_000_000))

    def __init__(self) -> None:
        self.closed = asyncio.Event()

    async def invoke(self, call: ModelCall) -> ModelAnswer:
        await asyncio.Event().wait()
        raise AssertionError

    async def stream(self, call: ModelCall) -> AsyncIterator[ModelPiece]:
        try:
            yield ModelPiece(content="one ", usage=Usage(3, 4, 7))
            await asyncio.Event().wait()
        finally:
            self.closed.set()


def calls_of(catalog: ModelCatalog, noted: list[ModelUsageRow]) -> ModelCalls:
    return ModelCalls(catalog, Metering(catalog, note=ended_in(noted), clock=time.time))


class Room:
    def __init__(self) -> None:
        self.noted: list[ModelUsageRow] = []
        self.slow = SlowModel()
        catalog = ModelCatalog([DemoModel(), self.slow])
        self.calls = calls_of(catalog, self.noted)


def asking(model_id: str = "demo", text: str = "add 2 and 3", **more: Any) -> ModelsInvokeParams:
    messages = [{"role": "user", "content": text}]
    return ModelsInvokeParams.model_validate({"run_id": "run-1", "model_id": model_id, "messages": messages} | more)


async def test_an_answer_comes_with_its_usage_and_leaves_a_row() -> None:
    room = Room()
    answer = await room.calls.invoke(GRANT, asking(text="hello"))
    assert answer.message.text.startswith("Hello")
    assert answer.usage is not None
    (row,) = room.noted
    assert (row.run_id, row.user_id, row.model_id, row.operation, row.result) == (
        "run-1",
        "ann",
        "demo",
        "invoke",
        "ok",
    )
    assert row.total_tokens == answer.usage.total_tokens
    assert (row.cost, row.estimated) == (0.0, False), "it is free, and counted by itself"


async def test_a_streamed_answer_is_on_the_wire_what_the_protocol_says() -> None:
    tool = {"name": "add", "description": "Add.", "parameters": {"properties": {"a": {"type": "number"}}}}
    room = Room()
    for asked in (asking(text="I like trains"), asking(text="call add {}", tools=[tool])):
        stream = room.calls.stream(GRANT, asked)
        said = [chunk async for chunk in stream]
        read = [ModelsStreamChunk.from_wire(dict(chunk)) for chunk in said]
        for chunk, model in zip(said, read, strict=True):
            assert model.model_dump(exclude_unset=True) == chunk
        assert read[-1].chunk is not None
        assert read[-1].chunk.is_final
        assert ModelsStreamResult.from_wire(dict(stream.result)).usage == read[-1].usage
    assert read[-1].chunk.tool_calls is not None
    assert read[-1].chunk.tool_calls[0].function.name == "add"
    assert [row.operation for row in room.noted] == ["stream", "stream"]


async def test_closing_a_stream_closes_the_provider_and_records_what_was_used_so_far() -> None:
    room = Room()
    stream = room.calls.stream(GRANT, asking("slow"))
    async for chunk in stream:
        assert chunk["chunk"]["content"] == "one "
        break
    await stream.aclose()
    assert room.slow.closed.is_set()
    (row,) = room.noted
    assert (row.result, row.total_tokens) == ("cancelled", 7)
    assert row.cost == 3 * 1 + 4 * 2


class DownModel(DemoModel):
    info = replace(DemoModel.info, model_id="down")

    async def stream(self, call: ModelCall) -> AsyncIterator[ModelPiece]:
        raise HostError(ErrorCode.RUNTIME_ERROR, f"{call.model_id} is down", retryable=True)
        yield


class UncountedModel(DemoModel):
    """One whose server counts nothing."""

    info = replace(DemoModel.info, model_id="uncounted")

    async def stream(self, call: ModelCall) -> AsyncIterator[ModelPiece]:
        yield ModelPiece("well")
        yield ModelPiece(final=True)


async def test_who_stepped_in_is_on_record_also_when_it_counts_nothing() -> None:
    noted: list[ModelUsageRow] = []
    catalog = ModelCatalog([DownModel(), UncountedModel()], fallbacks={"down": ["uncounted"]})
    calls = calls_of(catalog, noted)
    async for _ in calls.stream(a_grant(models={"down": ALL}), asking("down")):
        pass
    assert [(row.model_id, row.answered_by) for row in noted] == [("down", "uncounted")]


async def test_what_a_server_does_not_count_is_estimated_and_the_record_says_so() -> None:
    noted: list[ModelUsageRow] = []
    calls = calls_of(ModelCatalog([UncountedModel()]), noted)
    async for _ in calls.stream(a_grant(models={"uncounted": ALL}), asking("uncounted", "four words of it")):
        pass
    (row,) = noted
    assert (row.result, row.estimated) == ("ok", True)
    assert (row.prompt_tokens, row.completion_tokens, row.total_tokens) == (4, 1, 5)


class TalkingModel(DemoModel):
    """One whose server would count at the end, and is never heard to the end."""

    info = replace(DemoModel.info, model_id="talking", prices=Prices(1_000_000, 2_000_000))

    async def stream(self, call: ModelCall) -> AsyncIterator[ModelPiece]:
        yield ModelPiece(reasoning="hm, well")
        yield ModelPiece("预算表一二三四")
        await asyncio.Event().wait()


async def test_a_stream_that_is_stopped_before_its_provider_counted_is_not_free() -> None:
    noted: list[ModelUsageRow] = []
    stream = calls_of(ModelCatalog([TalkingModel()]), noted).stream(
        a_grant(models={"talking": ALL}), asking("talking", "tell me all")
    )
    heard = aiter(stream)
    assert [await anext(heard), await anext(heard)]
    await stream.aclose()
    (row,) = noted
    assert (row.result, row.estimated) == ("cancelled", True)
    assert (row.prompt_tokens, row.completion_tokens) == (3, 8)
    assert row.cost == 3 * 1 + 8 * 2


async def test_a_call_that_nobody_answered_used_nothing() -> None:
    noted: list[ModelUsageRow] = []
    stream = calls_of(ModelCatalog([DownModel()]), noted).stream(a_grant(models={"down": ALL}), asking("down"))
    with pytest.raises(HostError):
        await anext(aiter(stream))
    assert [(row.total_tokens, row.cost, row.estimated) for row in noted] == [(None, None, False)]


async def test_a_call_that_the_gate_ends_with_the_time_of_its_run_is_on_record_as_cancelled() -> None:
    room = Room()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await room.calls.invoke(a_grant(models={"slow": ALL}), asking("slow"))
    assert [(row.result, row.estimated) for row in room.noted] == [("cancelled", True)]


@pytest.mark.spec("gate/questions")
async def test_a_call_that_takes_a_while_is_on_record_while_it_is_under_way_with_what_was_asked() -> None:
    noted: asyncio.Queue[ModelUsageRow] = asyncio.Queue()
    metering = Metering(ModelCatalog([SlowModel()]), note=noted.put_nowait, clock=time.time)
    calls = ModelCalls(ModelCatalog([SlowModel()]), metering)
    asked = asyncio.create_task(calls.invoke(a_grant(models={"slow": ALL}), asking("slow", "four words of it")))
    begun = await noted.get()
    assert (begun.result, begun.estimated, begun.total_tokens, begun.cost) == ("started", True, 4, 4)
    asked.cancel()
    ended = await noted.get()
    assert (ended.result, ended.call_id, ended.started_at) == ("cancelled", begun.call_id, begun.started_at)


async def test_only_granted_models_and_operations_can_be_used() -> None:
    room = Room()
    for grant in (a_grant(), a_grant(models={"demo": frozenset({"rerank"})}), a_grant(models={"demo": frozenset()})):
        with pytest.raises(HostError) as refused:
            await room.calls.invoke(grant, asking())
        assert refused.value.code is ErrorCode.UNAUTHORIZED
        with pytest.raises(HostError):
            room.calls.stream(grant, asking())
    with pytest.raises(HostError, match="no longer configured"):
        await room.calls.invoke(GRANT, asking("gone"))
    assert room.noted == []


async def test_documents_are_ranked() -> None:
    room = Room()
    asked = {"run_id": "run-1", "model_id": "demo", "query": "blue cars", "documents": ["red", "blue cars"]}
    ranked = await room.calls.rerank(GRANT, ModelsRerankParams.model_validate(asked | {"top_k": 1}))
    assert [entry.index for entry in ranked.results] == [1]
    assert [(row.operation, row.total_tokens) for row in room.noted] == [("rerank", 5)]
    with pytest.raises(HostError, match="top_k"):
        await room.calls.rerank(GRANT, ModelsRerankParams.model_validate(asked | {"top_k": 0}))
    too_many = asked | {"documents": ["x"] * 1001}
    with pytest.raises(HostError, match="1000"):
        await room.calls.rerank(GRANT, ModelsRerankParams.model_validate(too_many))
