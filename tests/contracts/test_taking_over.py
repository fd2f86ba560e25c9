"""What every store promises when one user takes over what another has: all of a conversation at once, and the rest."""

from pathlib import Path

import pytest

from contracts.builders import SESSION, Owner, a_decision, a_run, an_item, said
from contracts.test_calls import a_tool_call, used
from paddock.ports import Store
from paddock.rules.errors import ErrorCode, HostError, StaleOwnerError
from paddock.rules.people import RunsQuery
from paddock.rules.rows.automation import AutomationRow, CalendarEventRow, CalendarTurn
from paddock.rules.rows.forgetting import OwnershipMoved, SessionMoved, SessionSettled, StateMoved
from paddock.rules.rows.rows import AgentRow, ArtifactRow, SessionDetailsRow, StateRow, ThreadNameRow, UserRow
from paddock.rules.search.queries import ThreadQuery, thread_phrases
from paddock.rules.values import replace
from paddock.storage.sqlite.commands import migrate
from paddock.storage.sqlite.connection import open_writer
from paddock.storage.tables.taking_over import APART, OWNED

pytestmark = pytest.mark.anyio
W = "workspace"


def a_file(artifact_id: str, conversation_id: str | None) -> ArtifactRow:
    return ArtifactRow(
        artifact_id=artifact_id,
        workspace_id=W,
        user_id="ann",
        conversation_id=conversation_id,
        thread_id=None,
        run_id=None,
        agent_id=None,
        runner_id=None,
        source="platform",
        artifact_type="file",
        mime_type="text/plain",
        name="notes.txt",
        size=3,
        sha256="ab" * 32,
        published=True,
        created_at=1.0,
        expires_at=None,
        metadata=b"{}",
    )


def a_job(job_id: str, thread_id: str) -> AutomationRow:
    return AutomationRow(job_id, W, "ann", thread_id, b"{}", True, None, 1.0, 1.0)


async def a_conversation(store: Store) -> Owner:
    """Ann's, with one of everything."""
    owner = await Owner.of(store)
    run = a_run("01", status="completed")
    fact = said("hi", turn_id="01")
    await owner.write(fact, rows=[run, replace(an_item(1, content="find the walrus"), run_id="01")])
    await store.write(
        [
            SessionDetailsRow(SESSION, title="Walrus"),
            ThreadNameRow(W, "ann", "animals", SESSION),
            ThreadNameRow(W, "ann", "zoo", SESSION),
            ThreadNameRow(W, "bob", "zoo", "another"),
            a_tool_call("c1", "01", session_id=SESSION, workspace_id=W, user_id="ann"),
            used("u1", "01", session_id=SESSION, workspace_id=W, user_id="ann"),
            a_file("f1", SESSION),
            a_file("f2", None),
            a_job("j1", SESSION),
            a_job("j2", "no thread yet"),
            StateRow("actor:ann", "mood", b'"good"', 1.0),
            StateRow("actor:ann", "city", b'"Rome"', 1.0),
            StateRow("actor:bob", "city", b'"Oslo"', 1.0),
        ]
    )
    return owner


async def test_a_conversation_goes_to_another_user_with_all_that_is_in_it(store: Store) -> None:
    owner = await a_conversation(store)
    query = ThreadQuery(W, "ann", thread_phrases("walrus"))
    assert [one.summary.session_id for one in (await store.find_sessions(query)).threads] == [SESSION]
    assert (await store.words_of(W, "ann") > 0, await store.words_of(W, "bob")) == (True, 0)
    words = await store.words_of(W, "ann")
    epoch = (await store.claim(SESSION)).epoch
    moved = [SessionMoved(SESSION, W, "ann", "bob", epoch), SessionSettled(SESSION)]
    await store.write([*moved, StateMoved("actor:ann", "actor:bob"), a_decision("handed over")])

    assert await store.sessions_of(W, "ann") == []
    assert [(one.session_id, one.user_id, one.title) for one in await store.sessions_of(W, "bob")] == [
        (SESSION, "bob", "Walrus")
    ]
    assert (await store.count_sessions(W, "ann"), await store.count_sessions(W, "bob")) == (0, 1)
    assert (await store.words_of(W, "ann"), await store.words_of(W, "bob")) == (0, words)
    assert [run.run_id for run in await store.runs_where(RunsQuery(W, "bob"))] == ["01"]
    assert await store.runs_by_label(W, "ann", "label-of-01") == []
    assert [call.user_id for call in await store.tool_calls("01")] == ["bob"]
    assert [one.user_id for one in await store.model_usage("01")] == ["bob"]
    files = [await store.artifact(name) for name in ("f1", "f2")]
    assert [file and file.user_id for file in files] == ["bob", "ann"]
    jobs = [await store.automation(name) for name in ("j1", "j2")]
    assert [job and job.user_id for job in jobs] == ["bob", "ann"]
    names = [await store.thread_named(W, "bob", name, "first", "old") for name in ("animals", "zoo")]
    assert names == [SESSION, "another"]
    for user, found in (("ann", []), ("bob", [SESSION])):
        threads = await store.find_sessions(ThreadQuery(W, user, thread_phrases("walrus")))
        assert [one.summary.session_id for one in threads.threads] == found
    state = await store.state_snapshot(["actor:ann", "actor:bob"], max_bytes=1000)
    assert state["actor:ann"].values == {}
    assert state["actor:bob"].values == {"mood": b'"good"', "city": b'"Oslo"'}
    with pytest.raises(StaleOwnerError):
        await owner.write(said("too late"))


@pytest.mark.parametrize("late", ["somebody went on", "it is another's"])
async def test_a_conversation_that_somebody_went_on_with_stays_where_it_was(store: Store, late: str) -> None:
    await a_conversation(store)
    epoch = (await store.claim(SESSION)).epoch
    if late == "somebody went on":
        await (await Owner.of(store)).write(said("I am not done"))
    whose = "ann" if late == "somebody went on" else "cem"
    with pytest.raises(HostError) as refused:
        await store.write([a_decision(), SessionMoved(SESSION, W, whose, "bob", epoch), SessionSettled(SESSION)])
    assert refused.value.code is ErrorCode.CONFLICT
    assert [one.session_id for one in await store.sessions_of(W, "ann")] == [SESSION]
    assert await store.audit() == []


async def test_what_is_beside_conversations_goes_too(store: Store) -> None:
    await a_conversation(store)
    event = CalendarEventRow("e1", W, "ann", b"{}", False, 1.0, 2.0, 1.0, 1.0)
    agent = AgentRow(W, "a1", b"{}", 1.0, "ann")
    other = AgentRow(W, "a2", b"{}", 1.0, "cem")
    await store.write([event, CalendarTurn(W, "ann", 0), UserRow(W, "ann", "Europe/Rome", "it", 1.0), agent, other])
    for _ in range(2):  # asked again it changes nothing more
        await store.write([OwnershipMoved(W, "ann", "bob")])
        file, job = await store.artifact("f2"), await store.automation("j2")
        assert (file and file.user_id, job and job.user_id) == ("bob", "bob")
        assert [one.event_id for one in await store.calendar_events(W, "bob", since=0.0, until=9.0, limit=9)] == ["e1"]
        assert (await store.calendar_state(W, "ann")).turns >= 1
        assert (await store.calendar_state(W, "bob")).turns >= 1
        profile = await store.user(W, "bob")
        assert profile is not None
        assert (profile.time_zone, profile.locale) == ("Europe/Rome", "it")
        assert {row.agent_id: row.updated_by for row in await store.stored_agents()} == {"a1": "bob", "a2": "cem"}


async def test_who_has_set_their_time_zone_keeps_it(store: Store) -> None:
    await store.write([UserRow(W, "ann", "Europe/Rome", "it", 1.0), UserRow(W, "bob", "UTC", None, 1.0)])
    await store.write([OwnershipMoved(W, "ann", "bob")])
    profile = await store.user(W, "bob")
    assert profile is not None
    assert profile.time_zone == "UTC"


def test_no_table_that_names_an_owner_is_forgotten(tmp_path: Path) -> None:
    connection = open_writer(tmp_path)
    migrate(connection)
    sql = """
    select m.name from sqlite_master m join pragma_table_info(m.name) c where m.type = 'table' and c.name = 'user_id'"""
    found = {name for (name,) in connection.execute(sql)}
    connection.close()
    assert found == {*OWNED, *APART}
