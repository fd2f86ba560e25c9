"""What every store promises about people: what they set, what they think of answers, and what they left behind."""

import pytest

from contracts.builders import SESSION, Owner, a_decision, an_item, said
from paddock.ports import ApiKeyRow, Store
from paddock.rules.errors import HostError
from paddock.rules.rows.forgetting import SessionGone
from paddock.rules.rows.rows import FeedbackRow, LeftBehindRow, ThreadNameRow, UserRow
from paddock.rules.search.queries import transcript_query
from paddock.rules.values import replace

pytestmark = pytest.mark.anyio


async def a_talk(store: Store, count: int = 6) -> None:
    items = [replace(an_item(seq, content=f"word {seq}"), created_at=float(seq * 10)) for seq in range(1, count + 1)]
    await (await Owner.of(store)).write(*(said("x", None) for _ in items), rows=items)


async def test_what_somebody_set_is_theirs_alone_and_written_whole(store: Store) -> None:
    await store.write([UserRow("w", "ann", "Asia/Tokyo", "ja", 1.0), UserRow("w", "bob", None, "en", 1.0)])
    await store.write([UserRow("w", "ann", None, "nb", 2.0), a_decision()])
    assert await store.user("w", "ann") == UserRow("w", "ann", None, "nb", 2.0)
    assert await store.user("w", "bob") == UserRow("w", "bob", None, "en", 1.0)
    assert await store.user("v", "ann") is None


async def test_feedback_is_one_opinion_for_each_answer_and_can_be_taken_back(store: Store) -> None:
    await store.write([FeedbackRow(SESSION, "a", "up", "", 1.0), FeedbackRow(SESSION, "b", "down", "no", 1.0)])
    await store.write([FeedbackRow(SESSION, "a", "down", "wrong", 2.0), FeedbackRow("other", "c", "up", "", 1.0)])
    found = await store.feedback(SESSION, ["a", "b", "c"])
    assert found == {
        "a": FeedbackRow(SESSION, "a", "down", "wrong", 2.0),
        "b": FeedbackRow(SESSION, "b", "down", "no", 1.0),
    }
    await store.write([FeedbackRow(SESSION, "b", None, "", 3.0)])
    assert (await store.feedback(SESSION, ["a", "b"])).keys() == {"a"}


async def test_a_moment_is_found_in_a_conversation(store: Store) -> None:
    await a_talk(store)
    places = [await store.place_of(SESSION, moment) for moment in (0, 10, 10.5, 30, 60, 60.5)]
    assert [sum(seq < place for seq in range(1, 7)) for place in places] == [0, 0, 1, 2, 5, 6]
    assert await store.place_of("nobody", 5) in {0, 1}


async def test_what_was_said_is_read_between_two_places_without_tools_and_events(store: Store) -> None:
    tool = replace(an_item(2), role="tool", item_type="tool_result")
    rows = [an_item(1), tool, replace(an_item(3), role="assistant"), replace(an_item(4), role="system"), an_item(5)]
    await (await Owner.of(store)).write(*(said("x", None) for _ in rows), rows=rows)
    assert [row.seq for row in await store.spoken(SESSION, before=9, limit=9)] == [5, 3, 1]
    assert [row.seq for row in await store.spoken(SESSION, before=5, start=1, limit=9, newest_first=False)] == [1, 3]
    assert [row.seq for row in await store.spoken(SESSION, before=5)] == [3]


async def test_what_is_left_behind_is_not_read_with_the_conversation(store: Store) -> None:
    await a_talk(store)
    await store.write([LeftBehindRow(SESSION, 3, 4)])
    assert [row.seq for row in await store.transcript(SESSION, newest_first=False)] == [1, 2, 5, 6]
    assert [row.seq for row in await store.spoken(SESSION, before=9, limit=9)] == [6, 5, 2, 1]
    found = await store.search(SESSION, transcript_query("word", {}, 50))
    assert [row.seq for row in found] == [6, 5, 2, 1]


async def test_a_deleted_conversation_takes_opinions_and_what_was_left_behind_along(store: Store) -> None:
    await a_talk(store)
    await store.write([FeedbackRow(SESSION, "a", "up", "", 1.0), LeftBehindRow(SESSION, 1, 2)])
    await store.write([SessionGone(SESSION)])
    assert await store.feedback(SESSION, ["a"]) == {}


async def test_a_revoked_key_lets_nobody_in_and_stays_on_record(store: Store) -> None:
    rows = [
        ApiKeyRow(name, name.encode(), space, "ann", "user", at)
        for name, space, at in [("a", "w", 1.0), ("b", "v", 2.0)]
    ]
    for row in rows:
        await store.add_key(row)
    await store.revoke_key("a", 5.0, a_decision())
    await store.revoke_key("a", 6.0, a_decision())
    assert await store.find_key(b"a") is None
    assert await store.find_key(b"b") == rows[1]
    assert set(await store.live_keys(["a", "b", "never was"])) == {"b"}
    assert set(await store.live_keys([])) == set()
    assert [row.revoked_at for row in await store.api_keys("w")] == [5.0]
    assert [row.revoked_at for row in await store.api_keys("w", user_id="ann")] == [5.0]
    assert list(await store.api_keys("w", user_id="nobody")) == []
    assert [row.key_id for row in await store.api_keys(None)] == ["b", "a"]
    await store.revoke_key("b", 7.0, a_decision())
    assert await store.any_key()


async def test_a_user_has_each_name_for_a_conversation_once_and_it_goes_with_the_conversation(store: Store) -> None:
    await a_talk(store)
    names = [ThreadNameRow("w", "ann", "main", "old"), ThreadNameRow("w", "bob", "main", "bobs")]
    await store.write([*names, ThreadNameRow("w", "ann", "a\x00b", SESSION)])
    await store.write([ThreadNameRow("w", "ann", "main", SESSION)])
    assert await store.thread_named("w", "ann", "main", "new", "none") == SESSION
    assert await store.thread_named("w", "ann", "a\x00b", "new", "none") == SESSION
    assert await store.thread_named("w", "bob", "main", "new", "none") == "bobs"
    assert await store.thread_named("v", "ann", "main", "new", "none") == "new"
    owner = await store.session(SESSION)
    assert owner is not None
    assert await store.thread_named(owner.workspace_id, owner.user_id, "unnamed", "new", SESSION) == SESSION
    for stranger in ((owner.workspace_id, "somebody"), ("elsewhere", owner.user_id)):
        assert await store.thread_named(*stranger, "unnamed", "new", SESSION) == "new"
    assert not await store.is_buried(SESSION)
    await store.write([SessionGone(SESSION, buried_at=1.0)])
    assert await store.thread_named("w", "ann", "main", "new", "none") == "new"
    assert await store.thread_named("w", "ann", "main", SESSION, "none") is None
    assert await store.thread_named("w", "bob", "main", SESSION, "none") == "bobs"
    assert await store.is_buried(SESSION)


async def test_what_exists_already_is_told_without_the_words_of_the_database(store: Store) -> None:
    row = ApiKeyRow("k1", b"1" * 32, "acme", "ann", "user", 0.0)
    await store.add_key(row)
    with pytest.raises(HostError, match=r"^this (key )?exists already$"):
        await store.add_key(row)
