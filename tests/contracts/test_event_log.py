"""What every event log promises: one owner, all or none, in order, and readers that find what was compacted."""

import asyncio

import pytest

from contracts.builders import SESSION, Owner, a_run, a_session, an_inbox_row, delta, finished, said
from paddock.ports import Store
from paddock.rules.errors import ErrorCode, HostError, StaleOwnerError, StorageUnavailableError
from paddock.rules.values import replace

pytestmark = pytest.mark.anyio


async def test_an_owner_that_was_replaced_can_no_longer_write(store: Store) -> None:
    old = await Owner.of(store)
    await old.write(said("hello"))
    await store.claim(SESSION)
    with pytest.raises(StaleOwnerError):
        await old.write(said("too late"))
    assert [fact.read_payload() for fact in await store.read(SESSION)] == [{"text": "hello"}]


async def test_a_replaced_owner_stays_stale_after_the_new_one_wrote(store: Store) -> None:
    old, new = await Owner.of(store), await Owner.of(store)
    await new.write(said("mine"))
    old.head = new.head
    with pytest.raises(StaleOwnerError):
        await old.write(said("also mine"))


async def test_what_the_last_owner_handed_over_is_read_by_the_next_or_refused(store: Store) -> None:
    for round_number in range(20):
        session_id = f"session-{round_number}"
        old = await Owner.of(store, session_id)
        handed_over = asyncio.create_task(old.write(said("on the way")))
        await asyncio.sleep(0)
        new = await Owner.of(store, session_id)
        (outcome,) = await asyncio.gather(handed_over, return_exceptions=True)
        assert isinstance(outcome, StaleOwnerError) == (new.head.seq == 0), outcome
        await new.write(said("next"))


async def test_a_batch_that_does_not_go_on_from_the_head_is_refused(store: Store) -> None:
    owner = await Owner.of(store)
    start = owner.head
    await owner.write(said("one"), said("two"))
    with pytest.raises(StaleOwnerError):
        await store.append(replace(owner.batch(said("three")), before=replace(start, seq=1)))
    assert len(await store.read(SESSION)) == 2


async def test_a_session_is_opened_once(store: Store) -> None:
    await (await Owner.of(store)).write(said("first"))
    late = await Owner.of(store)
    late.head = replace(late.head, seq=0)
    with pytest.raises(StaleOwnerError):
        await late.write(said("first again"))
    assert await store.session(SESSION) == a_session()


async def test_a_session_that_nobody_opened_takes_no_facts(store: Store) -> None:
    owner = await Owner.of(store)
    with pytest.raises(StaleOwnerError):
        await store.append(replace(owner.batch(said("hi")), rows=()))
    assert await store.read(SESSION) == []


async def test_a_session_is_opened_from_its_beginning_only(store: Store) -> None:
    owner = await Owner.of(store)
    batch = owner.batch(said("hi"))
    with pytest.raises(StaleOwnerError):
        await store.append(replace(batch, before=replace(batch.before, seq=7)))
    assert await store.session(SESSION) is None


async def test_a_batch_is_written_all_or_none(store: Store) -> None:
    owner = await Owner.of(store)
    await owner.write(said("one"), rows=[an_inbox_row("taken")])
    with pytest.raises(HostError) as refused:
        await owner.write(said("two"), rows=[a_run("run-2"), an_inbox_row("taken")], snapshot=b"never")
    assert refused.value.code is ErrorCode.CONFLICT
    assert len(await store.read(SESSION)) == 1
    assert await store.run("run-2") is None
    claim = await store.claim(SESSION)
    assert (claim.head, claim.snapshot) == (owner.head, b"")


async def test_facts_come_back_byte_for_byte_in_order(store: Store) -> None:
    owner = await Owner.of(store)
    texts = ["", "plain", "\x00nul", "你好 🐎", "x" * 100_000]
    first = await owner.write(*(said(text) for text in texts[:3]))
    second = await owner.write(*(said(text, turn_id=None) for text in texts[3:]))
    assert list(await store.read(SESSION)) == [*first, *second]
    assert [fact.read_payload()["text"] for fact in await store.read(SESSION)] == texts


async def test_a_stale_batch_does_not_disturb_its_neighbours_in_the_same_commit(store: Store) -> None:
    owners = [await Owner.of(store, f"session-{n}") for n in range(12)]
    await store.claim("session-5")
    outcomes = await asyncio.gather(*(owner.write(said("hi")) for owner in owners), return_exceptions=True)
    assert [n for n, outcome in enumerate(outcomes) if isinstance(outcome, StaleOwnerError)] == [5]
    assert [len(await store.read(f"session-{n}")) for n in range(12)] == [1] * 5 + [0] + [1] * 6


async def test_a_guilty_batch_fails_alone(store: Store) -> None:
    owners = [await Owner.of(store, f"session-{n}") for n in range(12)]
    label = "the same label"
    runs = [a_run(f"run-{n}", session_id="shared", client_run_id=label if n in {3, 8} else "") for n in range(12)]
    writes = (owner.write(said("hi"), rows=[run]) for owner, run in zip(owners, runs, strict=True))
    outcomes = await asyncio.gather(*writes, return_exceptions=True)
    assert [n for n, outcome in enumerate(outcomes) if isinstance(outcome, HostError)] == [8]
    assert [n for n in range(12) if await store.run(f"run-{n}") is None] == [8]


async def test_a_finished_message_replaces_its_deltas_and_readers_inside_the_range_still_find_it(store: Store) -> None:
    owner = await Owner.of(store)
    await owner.write(said("hi"), delta("a"), delta("b"))
    await owner.write(delta("c"), finished("abc", first_seq=2), said("bye"), compacted=[("turn-1", 2, 4)])

    def seqs(facts: object) -> list[int]:
        return [fact.seq for fact in facts]  # type: ignore[attr-defined]

    assert seqs(await store.read(SESSION)) == [1, 5, 6]
    assert seqs(await store.read(SESSION, after=3)) == [5, 6]
    assert seqs(await store.read(SESSION, after=5)) == [6]
    assert [fact.position for fact in await store.read(SESSION)] == [1, 2, 6]


async def test_compaction_touches_only_deltas_of_that_turn_in_that_range(store: Store) -> None:
    owner = await Owner.of(store)
    await owner.write(delta("other", "turn-0"), delta("a"), said("between"), delta("b"), delta("beyond"))
    await owner.write(finished("ab", first_seq=2), compacted=[("turn-1", 1, 4)])
    assert [(fact.position, fact.seq) for fact in await store.read(SESSION)] == [(1, 1), (2, 6), (3, 3), (5, 5)]


async def test_pages_taken_by_position_show_every_fact(store: Store) -> None:
    owner = await Owner.of(store)
    await owner.write(*(delta(str(n)) for n in range(6)))
    await owner.write(said("x"), finished("012345", first_seq=1), *(said(str(n)) for n in range(7)))
    seen, after = set[int](), 0
    while page := [fact for fact in await store.read(SESSION, after=after, limit=4) if fact.position > after]:
        assert [(f.position, f.seq) for f in page] == sorted((f.position, f.seq) for f in page)
        seen.update(fact.seq for fact in page)
        after = page[-1].position
    assert seen == set(range(1, 16))


async def test_the_facts_of_one_turn_can_be_read_alone(store: Store) -> None:
    owner = await Owner.of(store)
    await owner.write(said("a", "turn-1"), said("b", "turn-2"), delta("c", "turn-1"), said("d", None))
    await (await Owner.of(store, "another")).write(said("e", "turn-1"))
    assert [fact.seq for fact in await store.read(SESSION, run_id="turn-1")] == [1, 3]
    assert [fact.seq for fact in await store.read(SESSION, run_id="turn-1", after=1)] == [3]
    assert [fact.seq for fact in await store.read(SESSION, run_id="turn-1", limit=1)] == [1]


async def test_a_claim_brings_the_snapshot_and_the_facts_after_it_in_order_of_number(store: Store) -> None:
    owner = await Owner.of(store)
    await owner.write(said("before"), delta("a"), snapshot=b"state at 2")
    later = await owner.write(delta("b"), said("other"), finished("ab", first_seq=2), compacted=[("turn-1", 2, 3)])
    claim = await store.claim(SESSION)
    assert (claim.snapshot, claim.snapshot_seq, claim.head) == (b"state at 2", 2, owner.head)
    assert claim.session == a_session()
    assert claim.facts == tuple(later[1:])


async def test_a_claim_of_an_unknown_session_starts_from_nothing(store: Store) -> None:
    claim = await store.claim("unknown")
    assert (claim.head.seq, claim.head.digest, claim.session, claim.snapshot, claim.facts) == (0, b"", None, b"", ())


async def test_batches_of_one_session_may_be_handed_over_without_waiting(store: Store) -> None:
    owner, batches = await Owner.of(store), []
    for n in range(30):
        batches.append(owner.batch(said(str(n)), snapshot=str(n).encode()))
        owner.head = batches[-1].after
    await asyncio.gather(*(store.append(batch) for batch in batches))
    assert [fact.seq for fact in await store.read(SESSION)] == list(range(1, 31))
    assert (await store.claim(SESSION)).snapshot == b"29"


async def test_rows_may_follow_without_facts(store: Store) -> None:
    owner = await Owner.of(store)
    await owner.write(said("hi"))
    await owner.write(rows=[a_run()], snapshot=b"same place")
    claim = await store.claim(SESSION)
    assert (claim.head, claim.snapshot_seq, claim.facts) == (owner.head, 1, ())


async def test_a_closed_store_takes_nothing(store: Store) -> None:
    owner = await Owner.of(store)
    await owner.write(said("hi"))
    await store.close()
    assert not store.healthy()
    with pytest.raises(StorageUnavailableError):
        await owner.write(said("too late"))


# --- what became of a batch whose append was never answered


async def test_of_a_batch_the_end_of_the_log_tells_whether_it_was_taken(store: Store) -> None:
    owner = await Owner.of(store)
    first = owner.batch(said("hello"))
    assert not await store.took(first)
    await store.append(first)
    assert await store.took(first)
    owner.head = first.after
    words = owner.batch(delta("a"), delta("b"))
    assert not await store.took(words)
    await store.append(words)
    assert await store.took(words)
    with pytest.raises(StaleOwnerError):
        await store.took(first)  # the log went on


async def test_a_batch_that_was_taken_is_refused_when_it_comes_again(store: Store) -> None:
    owner = await Owner.of(store)
    await owner.write(said("hello"))
    words = owner.batch(delta("a"), said("b"), rows=[a_run()])
    await store.append(words)
    with pytest.raises(StaleOwnerError):
        await store.append(words)
    assert await store.took(words)
    assert [fact.seq for fact in await store.read(SESSION)] == [1, 2, 3]


@pytest.mark.parametrize("writes", [True, False])
async def test_nothing_of_an_owner_that_was_replaced_is_called_taken_or_tried_again(store: Store, writes: bool) -> None:
    old = await Owner.of(store)
    await old.write(said("hello"))
    lost, new = old.batch(delta("a")), await Owner.of(store)
    if writes:
        await new.write(delta("a"))  # the log ends with the same number and the same digest now
        assert new.head == lost.after
    with pytest.raises(StaleOwnerError):
        await store.took(lost)
