"""What every store promises about the rows beside the log: runs, transcript, state, audit, inbox, keys."""

import pytest

from contracts.builders import SESSION, Owner, a_decision, a_run, a_value, an_inbox_row, an_item, said
from paddock.ports import ApiKeyRow, ScopeState, Store
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.values import replace

pytestmark = pytest.mark.anyio


async def test_a_run_is_written_again_whole_when_it_changes(store: Store) -> None:
    owner = await Owner.of(store)
    done = a_run(status="completed", ended_at=9.5, usage=b'{"tokens":3}', last_seq=7)
    await owner.write(said("hi"), rows=[a_run()])
    assert await store.run("run-1") == a_run()
    await owner.write(rows=[done])
    assert await store.run("run-1") == done


async def test_to_whom_a_run_belongs_is_written_once(store: Store) -> None:
    owner = await Owner.of(store)
    await owner.write(said("hi"), rows=[a_run()])
    await owner.write(rows=[a_run(user_id="mallory", workspace_id="theirs", client_run_id="x", status="failed")])
    assert await store.run("run-1") == a_run(status="failed")


async def test_a_label_names_one_run_of_a_user_in_a_session(store: Store) -> None:
    owner = await Owner.of(store)
    await owner.write(said("hi"), rows=[a_run("run-1", client_run_id="mine"), a_run("run-2", client_run_id="")])
    with pytest.raises(HostError) as refused:
        await owner.write(rows=[a_run("run-3", client_run_id="mine")])
    assert refused.value.code is ErrorCode.CONFLICT
    await owner.write(rows=[a_run("run-4", client_run_id=""), a_run("run-5", client_run_id="mine", user_id="bob")])


async def test_runs_are_found_by_the_callers_label_in_every_session(store: Store) -> None:
    owner = await Owner.of(store)
    sessions = [f"session-{n}" for n in range(4)]
    await owner.write(said("hi"), rows=[a_run(f"run-{s}", session_id=s, client_run_id="mine") for s in sessions])
    found = await store.runs_by_label("workspace", "ann", "mine")
    assert [run.session_id for run in found] == sessions[:2]
    assert len(await store.runs_by_label("workspace", "ann", "mine", limit=10)) == 4
    assert await store.runs_by_label("workspace", "bob", "mine") == []


async def test_unfinished_runs_are_told_oldest_first(store: Store) -> None:
    ages = {"run-c": 3.0, "run-a": 1.0, "run-b": 2.0, "run-d": 0.5}
    runs = [a_run(run_id, created_at=age, status="queued") for run_id, age in ages.items()]
    owner = await Owner.of(store)
    await owner.write(said("hi"), rows=[*runs, a_run("run-d", created_at=0.5, status="cancelled")])
    assert [run.run_id for run in await store.unfinished_runs()] == ["run-a", "run-b", "run-c"]


async def test_the_transcript_is_read_from_either_end(store: Store) -> None:
    owner = await Owner.of(store)
    await owner.write(said("hi"), rows=[an_item(seq) for seq in (1, 3, 5, 7)])

    async def seqs(**where: int | bool) -> list[int]:
        return [item.seq for item in await store.transcript(SESSION, **where)]  # type: ignore[arg-type]

    assert await seqs() == [7, 5, 3, 1]
    assert await seqs(newest_first=False, limit=2) == [1, 3]
    assert await seqs(before=7, limit=2) == [5, 3]
    assert await seqs(after=1, before=7, newest_first=False) == [3, 5]
    assert (await store.transcript(SESSION, limit=1))[0] == an_item(7)


async def test_the_item_that_uses_up_the_room_is_the_last(store: Store) -> None:
    owner = await Owner.of(store)
    items = [replace(an_item(seq), content="天" * 100, content_json=b"", metadata=b"") for seq in (1, 2, 3, 4)]
    await owner.write(said("hi"), rows=items)

    async def seqs(room: int, *, newest_first: bool = True) -> list[int]:
        return [item.seq for item in await store.transcript(SESSION, room=room, newest_first=newest_first)]

    assert await seqs(0) == [4]
    assert await seqs(299) == [4]
    assert await seqs(300) == [4, 3]
    assert await seqs(601, newest_first=False) == [1, 2, 3]
    assert await seqs(5000) == [4, 3, 2, 1]


async def test_the_transcript_is_counted_per_session(store: Store) -> None:
    owner, other = await Owner.of(store), await Owner.of(store, "other")
    await owner.write(said("hi"), rows=[an_item(1)])
    await owner.write(said("ho"), rows=[an_item(2), an_item(3)])
    await other.write(said("hi"), rows=[an_item(1, "other")])
    counts = [await store.transcript_count(session_id) for session_id in (SESSION, "other", "unknown")]
    assert counts == [3, 1, 0]


async def test_a_refused_batch_is_not_counted(store: Store) -> None:
    owner = await Owner.of(store)
    await owner.write(said("hi"), rows=[an_item(1)])
    with pytest.raises(HostError):
        await owner.write(said("ho"), rows=[an_item(2), an_item(1)])
    assert await store.transcript_count(SESSION) == 1
    assert await store.transcript(SESSION) == [an_item(1)]


async def test_an_inbox_row_is_found_by_its_key(store: Store) -> None:
    await (await Owner.of(store)).write(said("hi"), rows=[an_inbox_row("a")])
    assert await store.inbox(SESSION, "a") == an_inbox_row("a")
    assert await store.inbox(SESSION, "b") is None
    assert await store.inbox("other", "a") is None


async def test_the_last_word_on_a_state_key_counts(store: Store) -> None:
    await store.write([a_value("a", b"1"), a_value("b", b"2"), a_value("a", b"3"), a_value("b", None)])
    assert [await store.state("scope", key) for key in ("a", "b", "c")] == [b"3", None, None]
    await store.write([a_value("a", None)])
    assert await store.state("scope", "a") is None


async def test_state_is_measured_and_shown_per_scope(store: Store) -> None:
    await store.write([a_value("a", b"12345"), a_value("b", b"1" * 100), a_value("c", b""), a_value("d", b"123")])
    await store.write([a_value("a", b"elsewhere", scope_key="other")])
    assert await store.state_size("scope") == 108
    assert await store.state_size("nowhere") == 0
    scopes = ["scope", "nowhere", "other"]
    assert await store.state_snapshot(scopes, max_bytes=8) == {
        "scope": ScopeState(108, {"a": b"12345", "c": b"", "d": b"123"}, ("b",)),
        "nowhere": ScopeState(0, {}),
        "other": ScopeState(9, {}, ("a",)),
    }
    assert (await store.state_snapshot(["scope"], max_bytes=7))["scope"].values == {"a": b"12345", "c": b""}
    assert (await store.state_snapshot(["other"], max_bytes=9))["other"].values == {"a": b"elsewhere"}


async def test_state_can_be_written_with_the_facts_it_follows_from(store: Store) -> None:
    await (await Owner.of(store)).write(said("hi"), rows=[a_value("k", b"v")])
    assert await store.state("scope", "k") == b"v"


async def test_audit_rows_are_told_newest_first(store: Store) -> None:
    await store.write([a_decision("one", time=1.0), a_decision("two", run_id=None, time=2.0)])
    await (await Owner.of(store)).write(said("hi"), rows=[a_decision("three", time=3.0)])
    assert [row.reason for row in await store.audit()] == ["three", "two", "one"]
    assert [row.reason for row in await store.audit(run_id="run-1")] == ["three", "one"]
    assert await store.audit(limit=1) == [a_decision("three", time=3.0)]


async def test_keys_are_found_by_their_hash(store: Store) -> None:
    key = ApiKeyRow("key-1", b"\x00" * 32, "workspace", "ann", "admin", 1.0)
    assert not await store.any_key()
    await store.add_key(key)
    assert await store.any_key()
    assert await store.find_key(b"\x00" * 32) == key
    assert await store.find_key(b"\x01" * 32) is None
    with pytest.raises(HostError) as refused:
        await store.add_key(key)
    assert refused.value.code is ErrorCode.CONFLICT


async def test_nothing_is_found_where_nothing_was_written(store: Store) -> None:
    assert await store.session("x") is None
    assert await store.run("x") is None
    assert await store.read("x") == []
    assert await store.transcript("x") == []
    assert await store.unfinished_runs() == []
    assert await store.audit() == []


@pytest.mark.parametrize("strange", ["\x00", "a\x00b", "\x1a", "\x1a0\x00\x1a1", "你好\x00🐎"])
async def test_every_character_comes_back_from_every_column(store: Store, strange: str) -> None:
    owner = await Owner.of(store, strange)
    run = a_run(strange, session_id=strange, client_run_id=strange, message=strange, code=strange)
    item, order = an_item(1, strange, content=strange), an_inbox_row(strange, strange)
    decision = a_decision(strange, run_id=strange)
    await owner.write(said("hi", strange), rows=[run, item, order, decision, a_value(strange, b"v", strange)])
    assert await store.run(strange) == run
    assert await store.runs_by_label("workspace", "ann", strange) == [run]
    assert await store.transcript(strange) == [item]
    assert await store.inbox(strange, strange) == order
    assert await store.audit(run_id=strange) == [decision]
    assert (await store.state_snapshot([strange], max_bytes=9))[strange].values == {strange: b"v"}
    assert [fact.turn_id for fact in await store.read(strange, run_id=strange)] == [strange]
    assert (await store.claim(strange)).head == owner.head
