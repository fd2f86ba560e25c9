"""What a store shows of one of a platform's threads, and of a conversation as it stood when a run began."""

from typing import Any

import pytest

from contracts.builders import SESSION, Owner, a_run, an_item, said
from paddock.ports import Store
from paddock.rules.rows.calls import ToolCallRow
from paddock.rules.rows.deliveries import DeliveryRow
from paddock.rules.rows.rows import WHOLE, RunRow, TranscriptRow, View
from paddock.rules.search.queries import TranscriptQuery
from paddock.rules.search.tokens import phrases_of
from paddock.rules.values import replace

pytestmark = pytest.mark.anyio

THREADS = (None, "a", "b", "", "*", "no\0text")


def of_run(seq: int, run: RunRow, *, is_input: bool = False) -> TranscriptRow:
    item_id = f"{run.run_id}.0" if is_input else f"{run.run_id}.{seq}"
    return replace(
        an_item(seq, content=f"word {seq}"), item_id=item_id, run_id=run.run_id, subthread_id=run.subthread_id
    )


async def seqs(store: Store, view: View, **more: int) -> list[int]:
    return [row.seq for row in await store.transcript(SESSION, view=view, newest_first=False, limit=100, **more)]


async def test_a_thread_shows_its_own_items_and_facts_and_no_others(store: Store) -> None:
    owner = await Owner.of(store)
    runs = [replace(a_run(f"run-{number}"), subthread_id=name) for number, name in enumerate(THREADS)]
    items = [of_run(number + 1, run) for number, run in enumerate(runs)]
    facts = [replace(said("x", run.run_id), metadata={}) for run in runs]
    for fact, run, item in zip(facts, runs, items, strict=True):
        await owner.write(fact, rows=[run, item])
    await owner.write(said("of nobody", None))
    for number, name in enumerate(THREADS):
        view = View(name)
        assert await seqs(store, view) == [number + 1]
        assert (await store.transcript(SESSION, view=view, room=10_000))[0].subthread_id == name
        query = TranscriptQuery(phrases_of("word"), view=view)
        assert [row.seq for row in await store.search(SESSION, query)] == [number + 1]
        kinds = [fact.kind for fact in await store.read(SESSION)]
        events = await store.events(SESSION, kinds=kinds, view=view)
        assert {fact.turn_id for fact in events} == {f"run-{number}", None}
    assert await seqs(store, WHOLE) == list(range(1, len(THREADS) + 1))
    assert await seqs(store, View("elsewhere")) == []


async def test_a_page_as_of_a_beginning_leaves_out_what_waited_then(store: Store) -> None:
    owner = await Owner.of(store)
    ended = replace(a_run("ended"), status="completed", begun_seq=2)
    here = replace(a_run("here"), status="running", begun_seq=20)
    later = replace(a_run("later"), status="completed", begun_seq=30)
    waiting = replace(a_run("waiting"), status="queued", begun_seq=None)
    items = [of_run(1, ended, is_input=True), of_run(9, ended)]
    items += [of_run(seq, run, is_input=True) for seq, run in ((6, here), (7, later), (8, waiting))]
    items += [of_run(5, here)]  # what a client brought along with its input
    await owner.write(said("x", None), rows=[ended, here, later, waiting, *items])
    assert await seqs(store, replace(WHOLE, as_of=20), before=20) == [1, 5, 9]
    assert await seqs(store, replace(WHOLE, as_of=30), before=30) == [1, 5, 6, 9]
    assert await seqs(store, WHOLE) == [1, 5, 6, 7, 8, 9]


@pytest.mark.parametrize("top", [1, 3])
async def test_a_search_goes_on_before_a_place(store: Store, top: int) -> None:
    owner = await Owner.of(store)
    await owner.write(said("x", None), rows=[an_item(seq, content=f"word {seq}") for seq in range(1, 8)])
    found, before = list[int](), None
    while rows := await store.search(SESSION, TranscriptQuery(phrases_of("word"), limit=top, before_seq=before)):
        found += [row.seq for row in rows]
        before = found[-1]
    assert found == [7, 6, 5, 4, 3, 2, 1]


def a_call(call_id: str, run: RunRow, **changes: Any) -> ToolCallRow:
    begun = ToolCallRow(call_id, run.run_id, SESSION, "w", "ann", "a", "add", "started", b"{}", b"", None, 1.0, None)
    return replace(begun, **changes)


def a_delivery(run: RunRow, number: int) -> DeliveryRow:
    return DeliveryRow(f"{run.run_id}.{number:015d}", "w", "chat", SESSION, run.run_id, number, b"{}", 1.0, due_at=1.0)


async def test_calls_and_deliveries_stand_after_what_was_on_record_before_them(store: Store) -> None:
    owner = await Owner.of(store)
    one, two = a_run("one"), replace(a_run("two"), subthread_id="a")
    await owner.write(said("1", "one"), rows=[one, two])
    await store.write([a_call("c1", one), a_call("c2", one)])
    await owner.write(said("2", "one"), said("3", "one"), rows=[a_delivery(one, 3000), a_delivery(one, 3001)])
    await store.write([a_call("c3", one), a_call("t1", two)])
    await owner.write(said("4", "two"), rows=[a_delivery(two, 4000)])
    await store.write([a_call("c1", one, status="completed", ended_at=2.0)])
    calls = await store.placed_calls(SESSION)
    assert [(call.row.call_id, call.after) for call in calls] == [("t1", 3), ("c3", 3), ("c2", 1), ("c1", 1)]
    assert calls[-1].row.status == "completed"
    assert await store.placed_call("c1") == calls[-1]
    assert await store.placed_call("random") is None
    for number, call in enumerate(calls):
        older = await store.placed_calls(SESSION, before=(call.after, call.number), limit=2)
        assert older == calls[number + 1 : number + 3]
    assert [row.number for row in await store.deliveries_of_session(SESSION)] == [4000, 3001, 3000]
    assert [row.number for row in await store.deliveries_of_session(SESSION, before=4000, limit=1)] == [3001]
    for view, called, delivered in ((View(None), ["c3", "c2", "c1"], [3001, 3000]), (View("a"), ["t1"], [4000])):
        assert [call.row.call_id for call in await store.placed_calls(SESSION, view=view)] == called
        assert [row.number for row in await store.deliveries_of_session(SESSION, view=view)] == delivered
    assert await store.placed_calls("another") == []
    assert await store.deliveries_of_session("another") == []
