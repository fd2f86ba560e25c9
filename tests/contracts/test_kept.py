"""What every store promises about artifacts, storage areas, expected versions and the log read backward."""

import asyncio
from typing import Any

import pytest

from contracts.builders import SESSION, Owner, a_decision, a_value, delta, finished, said
from paddock.ports import Store
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.log.chain import ABSENT, version_of
from paddock.rules.rows.rows import (
    ArtifactAttached,
    ArtifactGone,
    ArtifactRow,
    ArtifactsCap,
    StorageCap,
    StorageRow,
    UploadsCap,
)
from paddock.rules.session.facts import Event, Fact, Target

pytestmark = pytest.mark.anyio

HASH = "ab" * 32


def an_artifact(artifact_id: str = "art_1", **changes: Any) -> ArtifactRow:
    columns: dict[str, Any] = {
        "workspace_id": "workspace",
        "user_id": "ann",
        "conversation_id": SESSION,
        "thread_id": None,
        "run_id": "run-1",
        "agent_id": "agent",
        "runner_id": "plugin:a/b/c",
        "source": "runner",
        "artifact_type": "file",
        "mime_type": "text/plain",
        "name": "notes.txt",
        "size": 5,
        "sha256": HASH,
        "published": False,
        "created_at": 1.0,
        "expires_at": 100.0,
        "metadata": b'{"a":1}',
    }
    return ArtifactRow(artifact_id, **columns | changes)


def a_blob(key: str, size: int = 3, *, area: str = "area", sha256: str | None = HASH, at: float = 1.0) -> StorageRow:
    return StorageRow(area, key, sha256, size, at)


async def refused(store: Store, *rows: Any) -> HostError:
    with pytest.raises(HostError) as error:
        await store.write([*rows])
    return error.value


# --- artifacts -------------------------------------------------------------------------------------------------------


async def test_an_artifact_is_found_by_its_id_as_it_was_written(store: Store) -> None:
    bare = an_artifact("art_2", user_id=None, conversation_id=None, run_id=None, name=None, expires_at=None)
    await store.write([an_artifact(), bare])
    assert await store.artifact("art_1") == an_artifact()
    assert await store.artifact("art_2") == bare
    assert await store.artifact("art_3") is None


async def test_what_an_artifact_holds_is_written_once_but_it_can_be_published_and_moved(store: Store) -> None:
    await store.write([an_artifact(conversation_id=None)])
    await store.write([an_artifact(conversation_id="there", thread_id="t", published=True, expires_at=None)])
    expected = an_artifact(conversation_id="there", thread_id="t", published=True, expires_at=None)
    assert await store.artifact("art_1") == expected


async def test_artifacts_are_told_by_conversation_and_by_age(store: Store) -> None:
    rows = [
        an_artifact(f"art_{n}", expires_at=float(n), conversation_id="even" if n % 2 == 0 else "odd") for n in range(5)
    ]
    await store.write([*rows, an_artifact("art_9", expires_at=None, conversation_id="even")])
    assert [row.artifact_id for row in await store.artifacts_of("even")] == ["art_0", "art_2", "art_4", "art_9"]
    assert len(await store.artifacts_of("even", limit=1)) == 1
    assert [row.artifact_id for row in await store.expired_artifacts(2.0)] == ["art_0", "art_1", "art_2"]
    assert [row.artifact_id for row in await store.expired_artifacts(9.0, limit=2)] == ["art_0", "art_1"]


async def test_a_workspace_has_a_cap_that_counts_what_is_being_written(store: Store) -> None:
    cap = ArtifactsCap("workspace", 10)
    await store.write([an_artifact("art_1"), an_artifact("art_2"), cap])
    await store.write([an_artifact("art_9", workspace_id="other", size=1000)])
    error = await refused(store, an_artifact("art_3", size=1), cap, a_decision("too much"))
    assert error.code is ErrorCode.PAYLOAD_TOO_LARGE
    assert await store.artifact("art_3") is None
    assert await store.audit() == []
    await store.write([ArtifactGone("art_1"), an_artifact("art_3", size=1), cap])
    assert await store.artifact_bytes("workspace") == 6


async def test_a_user_has_a_cap_on_uploads_that_counts_nothing_else(store: Store) -> None:
    cap = UploadsCap("workspace", "ann", 10)
    uploads = [an_artifact(f"art_{n}", source="platform") for n in (1, 2)]
    others = [an_artifact("art_8", size=900), an_artifact("art_9", source="platform", user_id="bob", size=900)]
    await store.write([*others, *uploads, cap])
    error = await refused(store, an_artifact("art_3", source="platform", size=1), cap)
    assert error.code is ErrorCode.PAYLOAD_TOO_LARGE
    assert "your uploads" in error.message
    assert await store.artifact("art_3") is None


async def test_an_upload_becomes_part_of_one_conversation_with_its_facts_and_stays_there(store: Store) -> None:
    await store.write([an_artifact("art_1", conversation_id=None, expires_at=5.0)])
    await (await Owner.of(store)).write(said("x", None), rows=[ArtifactAttached("art_1", SESSION, 90.0)])
    attached = an_artifact("art_1", published=True, expires_at=90.0)
    assert await store.artifact("art_1") == attached
    await store.write([ArtifactAttached("art_1", "another", 99.0), ArtifactAttached("art_no", "another", 99.0)])
    assert await store.artifact("art_1") == attached


async def test_bytes_are_in_use_while_any_row_names_them(store: Store) -> None:
    other = "cd" * 32
    await store.write([an_artifact("art_1"), an_artifact("art_2"), a_blob("k", sha256=other)])
    assert await store.blobs_in_use([HASH, other, "ef" * 32]) == {HASH, other}
    await store.write([ArtifactGone("art_1"), a_blob("k", sha256=None)])
    assert await store.blobs_in_use([HASH, other]) == {HASH}
    await store.write([ArtifactGone("art_2"), ArtifactGone("art_2")])
    assert await store.blobs_in_use([HASH]) == frozenset()
    assert await store.blobs_in_use([]) == frozenset()


# --- storage areas ---------------------------------------------------------------------------------------------------


async def test_a_blob_is_found_replaced_and_deleted_by_area_and_key(store: Store) -> None:
    await store.write([a_blob("k"), a_blob("k", 7, area="other")])
    await store.write([a_blob("k", 4, at=2.0)])
    assert await store.stored("area", "k") == a_blob("k", 4, at=2.0)
    await store.write([a_blob("k", sha256=None)])
    assert await store.stored("area", "k") is None
    assert await store.stored("other", "k") == a_blob("k", 7, area="other")


async def test_keys_are_listed_by_prefix_in_order_and_page_by_page(store: Store) -> None:
    keys = ["a", "a%", "a%b", "a_", "a/1", "a/2", "ab", "b", "é", "中文/1", "中文/2", "\U0010ffff", "\U0010ffffx"]
    await store.write([a_blob(key) for key in keys])
    await store.write([a_blob("a/3", area="other")])
    assert await store.stored_keys("area") == sorted(keys)
    for prefix in ("a", "a%", "a_", "a/", "中文", "\U0010ffff", "z"):
        assert await store.stored_keys("area", prefix=prefix) == [k for k in sorted(keys) if k.startswith(prefix)]
    first = await store.stored_keys("area", prefix="a", limit=3)
    assert await store.stored_keys("area", prefix="a", after=first[-1]) == ["a/1", "a/2", "a_", "ab"]


async def test_an_area_has_a_cap_and_a_replaced_value_counts_once(store: Store) -> None:
    cap = StorageCap("area", 10)
    await store.write([a_blob("a", 6), cap])
    assert (await refused(store, a_blob("b", 5), cap)).code is ErrorCode.PAYLOAD_TOO_LARGE
    await store.write([a_blob("a", 10), cap])
    assert (await store.stored_bytes("area"), await store.stored_bytes("nowhere")) == (10, 0)


async def test_rows_that_were_begun_long_ago_are_found_by_the_beginning_of_their_area(store: Store) -> None:
    await store.write(
        [a_blob("k", area="upload:1", at=1.0), a_blob("k", area="upload:2", at=5.0), a_blob("k", area="v")]
    )
    assert await store.stored_before("upload:", 5.0) == [a_blob("k", area="upload:1", at=1.0)]


# --- expected versions -----------------------------------------------------------------------------------------------


def expecting(value: bytes | None, expected: str, key: str = "k") -> Any:
    row = a_value(key, value)
    return type(row)(row.scope_key, row.key, row.value, row.updated_at, expected)


async def test_a_value_is_only_written_over_the_one_that_was_expected(store: Store) -> None:
    await store.write([expecting(b"1", ABSENT)])
    await store.write([expecting(b"2", version_of(b"1"))])
    error = await refused(store, expecting(b"3", version_of(b"1")), a_decision("late"))
    assert (error.code, error.retryable, error.details) == (ErrorCode.CONFLICT, True, {"version": version_of(b"2")})
    assert (await store.state("scope", "k"), await store.audit()) == (b"2", [])
    assert (await refused(store, expecting(b"4", ABSENT))).code is ErrorCode.CONFLICT
    await store.write([expecting(None, version_of(b"2"))])
    assert await store.state("scope", "k") is None


async def test_of_many_who_expect_the_same_only_one_writes(store: Store) -> None:
    async def attempt(number: int) -> bool:
        try:
            await store.write([a_decision(f"{number}"), expecting(b"%d" % number, ABSENT)])
        except HostError:
            return False
        return True

    written = await asyncio.gather(*(attempt(number) for number in range(20)))
    assert written.count(True) == 1
    assert await store.state("scope", "k") == b"%d" % written.index(True)
    assert len(await store.audit()) == 1


async def test_what_a_commit_writes_before_counts_for_what_it_expects(store: Store) -> None:
    first = store.write([a_value("k", b"1")])
    await asyncio.gather(first, store.write([expecting(b"2", version_of(b"1"))]))
    assert await store.state("scope", "k") == b"2"


# --- the log read backward -------------------------------------------------------------------------------------------


def to_agent() -> Fact:
    return Fact(Event.USER_INPUT, "", Target.AGENT, "user:ann", "a", turn_id="turn-1", payload={})


async def test_events_are_read_backward_by_kind_and_finished_messages_stand_where_they_began(store: Store) -> None:
    owner = await Owner.of(store)
    await owner.write(said("one"), to_agent())
    await owner.write(delta("he"), delta("llo"))
    await owner.write(said("two"))
    await owner.write(finished("hello", 3), compacted=[("turn-1", 3, 4)])
    kinds = (said("x").kind, "AGENT_OUTPUT:MESSAGE")
    facts = await store.events(SESSION, kinds=kinds)
    assert [(fact.seq, fact.position) for fact in facts] == [(5, 5), (6, 3), (1, 1)]
    assert [fact.seq for fact in await store.events(SESSION, kinds=kinds, before=5, limit=1)] == [6]
    assert await store.events(SESSION, kinds=()) == []
    assert await store.events("elsewhere", kinds=kinds) == []


async def test_one_fact_is_found_by_its_number_wherever_it_stands(store: Store) -> None:
    owner = await Owner.of(store)
    await owner.write(said("one"), delta("he"))
    await owner.write(finished("he", 2), compacted=[("turn-1", 2, 2)])
    first, moved = await store.fact(SESSION, 1), await store.fact(SESSION, 3)
    assert first is not None
    assert moved is not None
    assert (first.seq, moved.seq, moved.position) == (1, 3, 2)
    assert await store.fact(SESSION, 2) is None
    assert await store.fact("elsewhere", 1) is None
