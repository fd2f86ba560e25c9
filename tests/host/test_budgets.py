"""Budgets refuse before a call, in words that say whose, which, how much and when there is more."""

import asyncio
import time
from typing import Any

import pytest

from contracts.test_calls import ended_in
from grants import a_grant
from host.test_models import ALL, SlowModel, asking
from paddock.host.calls.knowledge import Embeddings
from paddock.host.calls.metering import Budgets, Metering
from paddock.host.calls.models import ModelCalls
from paddock.models.catalog import ModelCatalog
from paddock.models.demo import DemoModel
from paddock.rules.agents.resources import Prices
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.people import DAY, Budget, Payer
from paddock.rules.rows.calls import ModelUsageRow
from paddock.rules.values import replace
from stores import QuickStore, opened

pytestmark = pytest.mark.anyio

NOON = 20_000 * DAY + DAY / 2


class PricedDemo(DemoModel):
    info = replace(DemoModel.info, prices=Prices(1_000_000.0, 1_000_000.0))


class Gratis(DemoModel):
    info = replace(DemoModel.info, model_id="gratis")


class FallsBack(DemoModel):
    info = replace(DemoModel.info, model_id="falls back")


class Near(DemoModel):
    info = replace(DemoModel.info, model_id="near", model_type="embedding", operations=frozenset())


class Room:
    def __init__(self, store: QuickStore, **caps: Budget) -> None:
        self.store = store
        self.now = NOON
        self.rows: list[ModelUsageRow] = []
        budgets = Budgets(
            self.store,
            user=caps.get("user", Budget()),
            workspace=caps.get("workspace", Budget()),
            clock=lambda: self.now,
        )
        catalog = ModelCatalog(
            [PricedDemo(), SlowModel(), Gratis(), FallsBack(), Near()],
            fallbacks={"falls back": ["demo"]},
            clock=time.time,
        )
        metering = Metering(catalog, note=ended_in(self.rows), clock=lambda: self.now, budgets=budgets)
        self.calls = ModelCalls(catalog, metering)
        self.embed = Embeddings(catalog, metering)

    async def ask(self, user_id: str = "ann", model: str = "demo") -> Any:
        grant = a_grant(models=dict.fromkeys(("demo", "slow", "gratis", "falls back"), ALL), user_id=user_id)
        return await self.calls.invoke(grant, asking(model, "hello"))

    async def refusal(self, user_id: str = "ann") -> HostError:
        with pytest.raises(HostError) as refused:
            await self.ask(user_id)
        assert refused.value.code is ErrorCode.RATE_LIMITED
        return refused.value


async def test_a_user_who_used_up_the_days_tokens_is_told_so_and_others_are_not_touched(store: QuickStore) -> None:
    room = Room(store, user=Budget(tokens_per_day=10))
    await room.ask()
    error = await room.refusal()
    used = room.rows[0].total_tokens
    assert f"the user ann has used {used} of 10 tokens for today (UTC); there is more in 12 h 0 min" in error.message
    assert (error.retryable, error.details["retry_after"]) == (False, DAY / 2)
    assert len(room.rows) == 1, "a refused call is no call"
    await room.ask("bob")
    room.now += DAY / 2
    await room.ask()


async def test_what_is_on_record_counts_after_a_restart_and_so_do_other_hosts(store: QuickStore) -> None:
    first = Room(store, workspace=Budget(cost_per_day=5.0))
    await first.ask()
    await store.write(first.rows)
    second = Room(store, workspace=Budget(cost_per_day=5.0))
    assert "the workspace w has spent" in (await second.refusal("bob")).message
    async with opened(QuickStore()) as elsewhere:
        third = Room(elsewhere, workspace=Budget(cost_per_day=5.0))
        third.store.spent_on = store.spent_on  # type: ignore[method-assign]
        assert "the workspace w" in (await third.refusal()).message


async def test_only_so_many_calls_are_under_way_at_once(store: QuickStore) -> None:
    room = Room(store, user=Budget(calls_at_once=1))
    waiting = asyncio.create_task(room.ask(model="slow"))
    await asyncio.sleep(0)
    error = await room.refusal()
    assert error.retryable
    assert "as many as are allowed at once" in error.message
    await room.ask("bob")
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await room.ask()


async def test_a_stream_is_refused_before_its_first_piece(store: QuickStore) -> None:
    room = Room(store, user=Budget(tokens_per_day=1))
    grant = a_grant(models={"demo": ALL})
    assert [chunk async for chunk in room.calls.stream(grant, asking())]
    with pytest.raises(HostError, match="tokens for today"):
        await anext(aiter(room.calls.stream(grant, asking())))


async def test_a_model_that_costs_nothing_answers_when_the_money_is_spent(store: QuickStore) -> None:
    room = Room(store, user=Budget(cost_per_day=5.0))
    await room.ask()
    assert "has spent" in (await room.refusal()).message
    await room.ask(model="gratis")
    with pytest.raises(HostError, match="has spent"):
        await room.ask(model="falls back")


async def test_vectors_are_used_on_behalf_of_somebody_and_count(store: QuickStore) -> None:
    room = Room(store, user=Budget(tokens_per_day=5, calls_at_once=1))
    ann = Payer("w", "ann")
    waiting = asyncio.create_task(room.ask(model="slow"))
    await asyncio.sleep(0)
    assert len(await room.embed(ann, "near", ["one two three", "four five"], deadline_at=NOON)) == 2
    (row,) = room.rows
    assert (row.operation, row.user_id, row.run_id, row.total_tokens) == ("embed", "ann", "", 5)
    with pytest.raises(HostError, match="the user ann has used 5 of 5 tokens"):
        await room.embed(ann, "near", ["six"], deadline_at=NOON)
    await room.embed(Payer("w", "bob"), "near", ["six"], deadline_at=NOON)
    with pytest.raises(HostError, match="there is no model 'nobody'; this host has"):
        await room.embed(ann, "nobody", ["six"], deadline_at=NOON)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
