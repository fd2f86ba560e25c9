"""What every store promises about conversations beside their logs: lists, names, kept members, their deletion."""

import pytest

from contracts.builders import SESSION, Owner, a_run, a_value, an_inbox_row, an_item, said
from paddock.ports import Store
from paddock.rules.rows.forgetting import SessionGone
from paddock.rules.rows.rows import KeptMemberRow, LeftBehindRow, SessionDetailsRow, TransactionRow
from paddock.rules.values import replace

pytestmark = pytest.mark.anyio

OTHER = "5d0c0f0e-6f0c-4f4e-8a52-000000000002"


async def test_conversations_are_listed_newest_first_page_by_page(store: Store) -> None:
    names = [f"session-{number}" for number in range(5)]
    for name in names:
        await (await Owner.of(store, name)).write(said("hi"))
    first = await store.sessions_of("workspace", "ann", limit=2)
    assert [row.session_id for row in first] == ["session-4", "session-3"]
    rest = await store.sessions_of("workspace", "ann", before=first[-1].number)
    assert [row.session_id for row in rest] == ["session-2", "session-1", "session-0"]
    assert await store.sessions_of("workspace", "bob") == []
    assert await store.sessions_of("elsewhere", "ann") == []


async def test_details_are_set_one_by_one_and_the_rest_stays(store: Store) -> None:
    await (await Owner.of(store)).write(said("hi"))
    plain = await store.session_summary(SESSION)
    assert plain is not None
    assert (plain.title, plain.archived, plain.closed, plain.user_id) == (None, False, False, "ann")
    await store.write([SessionDetailsRow(SESSION, title="Taxes")])
    await store.write([SessionDetailsRow(SESSION, archived=True)])
    await store.write([SessionDetailsRow(SESSION, closed=True)])
    await store.write([SessionDetailsRow(SESSION, archived=False)])
    named = await store.session_summary(SESSION)
    assert named is not None
    assert (named.title, named.archived, named.closed) == ("Taxes", False, True)
    assert await store.session_summary(OTHER) is None


async def test_a_conversation_without_a_title_tells_how_its_user_began(store: Store) -> None:
    owner = await Owner.of(store)
    await owner.write(said("hi"), rows=[replace(an_item(1), role="assistant"), an_item(2, content="")])
    assert await begins(store) is None
    await owner.write(said("and"), rows=[an_item(3, content="first " + "x" * 300), an_item(4, content="second")])
    assert await begins(store) == ("first " + "x" * 300)[:200]
    await store.write([LeftBehindRow(SESSION, 3, 3)])
    assert await begins(store) == "second"
    await store.write([SessionDetailsRow(SESSION, title="Taxes")])
    assert await begins(store) is None
    await store.write([SessionDetailsRow(SESSION, title="")])  # what an erased title leaves
    assert [row.begins for row in await store.sessions_of("workspace", "ann")] == ["second"]


async def begins(store: Store) -> str | None:
    summary = await store.session_summary(SESSION)
    assert summary is not None
    return summary.begins


async def test_archived_conversations_can_be_left_out_of_the_list(store: Store) -> None:
    for name in ("one", "two"):
        await (await Owner.of(store, name)).write(said("hi"))
    await store.write([SessionDetailsRow("one", archived=True)])
    assert [row.session_id for row in await store.sessions_of("workspace", "ann", archived=False)] == ["two"]
    assert [row.session_id for row in await store.sessions_of("workspace", "ann", archived=True)] == ["one"]
    assert len(await store.sessions_of("workspace", "ann")) == 2


async def test_the_last_word_on_a_kept_member_counts(store: Store) -> None:
    assert await store.kept_member(SESSION, "ada") is None
    await store.write([KeptMemberRow(SESSION, "ada", 1.0, b"{}"), KeptMemberRow(SESSION, "bob", 1.5, b"{}")])
    await store.write([KeptMemberRow(SESSION, "ada", 2.0, b'{"reason":"x"}')])
    assert await store.kept_member(SESSION, "ada") == KeptMemberRow(SESSION, "ada", 2.0, b'{"reason":"x"}')


async def test_a_transaction_is_known_until_it_is_over(store: Store) -> None:
    begun = [TransactionRow("x1", SESSION, "add_agent", 1.0), TransactionRow("x2", SESSION, "handover", 1.0)]
    owner = await Owner.of(store)
    await owner.write(said("hi"), rows=[*begun, TransactionRow("y1", OTHER, "remove_agent", 1.0)])
    assert await store.sessions_with_transactions() == [SESSION, OTHER]
    await owner.write(said("ho"), rows=[TransactionRow("x1", SESSION, "add_agent", 1.0, over=True)])
    assert await store.sessions_with_transactions() == [SESSION, OTHER]
    await store.write([TransactionRow("x2", SESSION, "handover", 1.0, over=True)])
    assert await store.sessions_with_transactions() == [OTHER]


async def test_a_conversation_that_is_gone_leaves_nothing_and_its_neighbour_everything(store: Store) -> None:
    for name in (SESSION, OTHER):
        run = f"run-of-{name}"
        owner = await Owner.of(store, name)
        rows = [a_run(run, session_id=name), an_item(1, name), an_inbox_row(session_id=name), a_value("k", b"1", name)]
        await owner.write(said("hi", run), rows=rows)
        await store.write([SessionDetailsRow(name, title="t"), KeptMemberRow(name, "ada", 1.0, b"{}")])
    assert await store.agents_of_session(SESSION) == [("agent", "author/name/runner")]
    await store.write([SessionGone(SESSION, (SESSION,))])
    assert await store.session(SESSION) is None
    assert await store.read(SESSION) == []
    assert await store.transcript(SESSION) == []
    assert await store.run(f"run-of-{SESSION}") is None
    assert await store.inbox(SESSION, "key") is None
    assert await store.state(SESSION, "k") is None
    assert await store.kept_member(SESSION, "ada") is None
    assert await store.agents_of_session(SESSION) == []
    assert [row.session_id for row in await store.sessions_of("workspace", "ann")] == [OTHER]
    assert await store.run(f"run-of-{OTHER}") is not None
    assert await store.state(OTHER, "k") == b"1"


async def test_a_conversation_that_is_gone_can_begin_anew_under_its_old_name(store: Store) -> None:
    await (await Owner.of(store)).write(said("hi"), rows=[an_item(1)])
    await store.write([SessionGone(SESSION)])
    await (await Owner.of(store)).write(said("again"), rows=[an_item(1)])
    assert len(await store.read(SESSION)) == 1


async def test_a_suggested_title_counts_only_where_there_is_none(store: Store) -> None:
    await (await Owner.of(store)).write(said("x", None))
    for row, title in (
        (SessionDetailsRow(SESSION, title="first", suggested=True), "first"),
        (SessionDetailsRow(SESSION, title="second", suggested=True), "first"),
        (SessionDetailsRow(SESSION, title="mine"), "mine"),
        (SessionDetailsRow(SESSION, title="third", suggested=True), "mine"),
    ):
        await store.write([row])
        found = await store.session_summary(SESSION)
        assert found is not None
        assert found.title == title
