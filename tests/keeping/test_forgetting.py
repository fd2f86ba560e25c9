"""Deleting a conversation, erasing a message, and forgetting what is past its time, on every plug."""

import asyncio
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from contracts.conftest import PLUGS, open_plug
from contracts.search_index import index
from host.calling import a_gateway, a_run, ask, created, ended
from host.scripted import ANN, BOB, SmallHouse, small_house
from keeping.conversations import THREAD, a_turn, words_in
from paddock.host.conversations.branches import Again, Branches
from paddock.host.keeping.deletion import Deletion
from paddock.host.keeping.retention import Retention
from paddock.host.people.principals import Principal
from paddock.host.session.arrivals import Accepted
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.log.chain import ANCHOR, verify
from paddock.rules.log.forgetting import DAY, Periods, replaced_by
from paddock.rules.rows.calls import ApprovalRow, ModelUsageRow, ToolCallRow
from paddock.rules.rows.forgetting import SessionGone
from paddock.rules.rows.rows import AuditRow
from paddock.rules.search.queries import TranscriptQuery
from paddock.rules.search.tokens import phrases_of
from paddock.rules.values import replace
from paddock.storage.files.backup import look
from paddock.storage.files.local import FileBlobs
from paddock.storage.postgres import PostgresStore
from paddock.storage.sqlite import SqliteStore
from paddock.storage.sqlite.commands import compare
from stores import QuickBlobs

pytestmark = pytest.mark.anyio

SECRET = "zanzibarquux"
A_DECISION = AuditRow(0.0, "default", "user:ann", "history.page", "", THREAD, "allowed", "")
ADMIN = Principal("default", "root", "admin")


class Days:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        self.now += 0.001
        return self.now


@pytest.fixture
def days() -> Days:
    return Days()


Houses = Callable[[], Any]


@pytest.fixture(params=PLUGS)
def a_house(request: pytest.FixtureRequest, tmp_path: Path, days: Days) -> Houses:
    @asynccontextmanager
    async def open_house() -> AsyncGenerator[SmallHouse]:
        embedded = request.param == "sqlite"
        blobs = FileBlobs(tmp_path / "data" / "blobs") if embedded else QuickBlobs()
        with open_plug(request.param, tmp_path) as store:
            async with small_house(store, gateway=a_gateway(), clock=days, blobs=blobs) as house:
                await blobs.open()
                yield house
                if isinstance(store, PostgresStore):
                    assert await store.check(THREAD) is None
                await store.close()
        if embedded:
            assert [looked.sentence for looked in look(tmp_path / "data") if looked.problem] == []
            assert [one.sentence for one in compare(tmp_path / "data")] == []

    return open_house


async def refused(work: Any) -> tuple[ErrorCode, str]:
    with pytest.raises(HostError) as error:
        await work
    return error.value.code, error.value.message


# --- deleting ---------------------------------------------------------------------------------------------------------


async def test_a_deleted_conversation_leaves_an_audit_row_and_an_id_nobody_gets(a_house: Houses) -> None:
    async with a_house() as house:
        await a_turn(house, thread=str(uuid.uuid4()))
        run = await a_run(house, THREAD)
        made = await created(house, run, b"its file")
        await ask(house, run, "state.set", scope="conversation", key="k", value=1)
        await ended(house, run, THREAD)
        [file] = await house.store.artifacts_of(THREAD)

        await house.keeping.delete_thread(ANN, THREAD)
        assert await house.store.session(THREAD) is None
        assert await house.store.run(run.run_id) is None
        assert await house.store.read(THREAD) == await house.store.transcript(THREAD) == []
        assert await house.store.artifact(made["artifact_id"]) is None
        with pytest.raises(HostError):
            await house.blobs.read(file.sha256, 0, 10)
        assert await house.store.purge() == 0
        [row] = [row for row in await house.store.audit() if row.action == "session.delete"]
        assert (row.resource, row.actor, row.result) == (THREAD, "user:ann", "allowed")
        code, text = await refused(house.say("hello again", thread=THREAD))
        assert (code, text) == (ErrorCode.NOT_FOUND, "there is no such thread")


async def test_state_of_a_deleted_conversation_is_gone_and_other_state_stays(a_house: Houses) -> None:
    async with a_house() as house:
        other = str(uuid.uuid4())
        for thread in (THREAD, other):
            run = await a_run(house, thread)
            await ask(house, run, "state.set", scope="conversation", key="k", value=thread)
            await ended(house, run, thread)
        await house.keeping.delete_thread(ANN, THREAD)
        run = await a_run(house, other)
        assert (await ask(house, run, "state.get", scope="conversation", key="k"))["value"] == other
        await ended(house, run, other)


async def test_a_conversation_is_not_deleted_by_others_nor_in_the_middle_of_a_run(a_house: Houses) -> None:
    async with a_house() as house:
        run = await a_run(house, THREAD)
        assert (await refused(house.keeping.delete_thread(BOB, THREAD)))[0] is ErrorCode.NOT_FOUND
        assert (await refused(house.keeping.delete_thread(ANN, THREAD)))[0] is ErrorCode.CONFLICT
        await ended(house, run, THREAD)
        await house.keeping.delete_thread(ADMIN, THREAD)
        assert await house.store.session(THREAD) is None


class OnDisk:
    """Where a conversation leaves files; removing them takes its time, and meanwhile something happens."""

    def __init__(self, meanwhile: Callable[[str], Awaitable[Any]]) -> None:
        self._meanwhile = meanwhile

    async def forget(self, workspace_id: str, session_id: str) -> None:
        await self._meanwhile(session_id)


def keeping_of(house: SmallHouse, meanwhile: Callable[[str], Awaitable[Any]]) -> Deletion:
    return Deletion(house.store, house.blobs, house.sessions, clock=house.sessions.clock, directories=OnDisk(meanwhile))


async def test_a_conversation_that_goes_on_while_it_is_being_deleted_stays_with_what_was_said(a_house: Houses) -> None:
    async with a_house() as house:
        await a_turn(house)
        keeping = keeping_of(house, lambda _: a_turn(house, "wait, there is more", "go on"))
        assert (await refused(keeping.delete_thread(ANN, THREAD)))[0] is ErrorCode.CONFLICT
        items = await house.store.transcript(THREAD, newest_first=False)
        assert [item.content for item in items] == ["hello", "good day", "wait, there is more", "go on"]
        assert [row for row in await house.store.audit() if row.action == "session.delete"] == []
        await house.keeping.delete_thread(ANN, THREAD)
        assert await house.store.session(THREAD) is None


# --- erasing ----------------------------------------------------------------------------------------------------------


async def test_the_words_of_an_erased_message_are_nowhere_and_the_chain_verifies(
    a_house: Houses, tmp_path: Path
) -> None:
    async with a_house() as house:
        accepted = await a_turn(house, f"my name is {SECRET}", "noted")
        later = {"messages": [{"role": "user", "content": f"my name is {SECRET}"}, {"content": "noted"}]}
        again = await house.say("go on", thread=THREAD, params=later)
        run = await house.gateway.next()
        run.say("run.completed")
        await house.story(again)

        erased = await house.keeping.erase(ANN, THREAD, f"{accepted.run_id}.0")
        assert (erased.copies, erased.artifacts) == (1, 0)
        facts = sorted(await house.store.read(THREAD), key=lambda fact: fact.seq)
        assert verify(facts) is None
        assert not any(SECRET.encode() in fact.payload + fact.metadata for fact in facts)
        items = await house.store.transcript(THREAD, newest_first=False)
        assert [item.content for item in items] == ["", "noted", "go on"]
        assert b"noted" in (await house.store.fact(THREAD, items[2].seq)).payload
        assert words_in(tmp_path, SECRET) == []
        assert not any(SECRET.encode() in entry.fact.payload for entry in await house.story(accepted))
        [row] = [row for row in await house.store.audit() if row.action == "message.erase"]
        assert (row.resource, row.run_id) == (f"{accepted.run_id}.0", accepted.run_id)


async def test_an_answer_is_erased_with_its_pieces_and_what_it_said_before_it_was_revised(
    a_house: Houses, tmp_path: Path
) -> None:
    async with a_house() as house:
        accepted = await house.say("tell me", thread=THREAD)
        run = await house.gateway.next()
        run.delta(f"it is {SECRET}")
        await house.until(THREAD, "AGENT_OUTPUT:CHUNK")
        run.message(f"no, it was {SECRET}")
        run.say("run.completed")
        await house.story(accepted)
        await house.keeping.erase(ANN, THREAD, f"{accepted.run_id}.1")
        facts = sorted(await house.store.read(THREAD), key=lambda fact: fact.seq)
        assert verify(facts) is None
        assert words_in(tmp_path, SECRET) == []
        again = await house.story(accepted)
        assert not any(SECRET.encode() in entry.fact.payload + entry.fact.metadata for entry in again)
        await a_turn(house, "next", "goes on")


async def edited(house: SmallHouse, item_id: str, text: str | None, says: str) -> Accepted:
    """Say a message differently, or have it answered again."""
    branches = Branches(controls=house.controls, inbox=house.inbox, records=house.store, clock=house.sessions.clock)
    accepted = await branches.again(ANN, THREAD, Again(item_id, str(uuid.uuid4()), None, text))
    run = await house.gateway.next()
    run.message(says)
    run.say("run.completed")
    await house.story(accepted)
    return accepted


async def test_what_an_edit_left_behind_is_erased_too(a_house: Houses, tmp_path: Path) -> None:
    async with a_house() as house:
        first = await a_turn(house, f"my name is {SECRET}", f"hello {SECRET}")
        await edited(house, f"{first.run_id}.0", "my name is Ann", "hello Ann")
        for number in (0, 1):
            await house.keeping.erase(ANN, THREAD, f"{first.run_id}.{number}")
        assert words_in(tmp_path, SECRET) == []
        assert verify(sorted(await house.store.read(THREAD), key=lambda fact: fact.seq)) is None
        items = await house.store.transcript(THREAD, newest_first=False)
        assert [item.content for item in items] == ["my name is Ann", "hello Ann"]


async def test_a_message_that_was_asked_again_is_erased_where_it_was_asked_before(
    a_house: Houses, tmp_path: Path
) -> None:
    async with a_house() as house:
        first = await a_turn(house, f"my name is {SECRET}", "hello")
        again = await edited(house, f"{first.run_id}.0", None, "hello again")
        last = await edited(house, f"{again.run_id}.1", None, "hello once more")
        await house.keeping.erase(ANN, THREAD, f"{last.run_id}.0")
        assert words_in(tmp_path, SECRET) == []
        items = await house.store.transcript(THREAD, newest_first=False)
        assert [item.content for item in items] == ["", "hello once more"]


async def test_what_an_edit_left_behind_stays_so_when_the_message_in_its_place_is_erased(
    a_house: Houses, tmp_path: Path
) -> None:
    async with a_house() as house:
        first = await a_turn(house, "one", "hello one")
        second = await edited(house, f"{first.run_id}.0", "two", "hello two")
        await house.keeping.erase(ANN, THREAD, f"{second.run_id}.0")
        [told] = [fact for fact in await house.store.read(THREAD) if replaced_by(fact) is not None]
        assert told.turn_id == second.run_id


async def test_an_erased_message_is_no_longer_found(a_house: Houses, tmp_path: Path) -> None:
    async with a_house() as house:
        accepted = await a_turn(house, f"find {SECRET}", "yes")
        for number in range(150):
            await a_turn(house, f"word {number}", "yes")
        query = TranscriptQuery(phrases=phrases_of(SECRET), limit=5)
        assert len(await house.store.search(THREAD, query)) == 1
        await index(house.store, THREAD)
        await house.keeping.erase(ANN, THREAD, f"{accepted.run_id}.0")
        assert await house.store.search(THREAD, query) == []
        assert words_in(tmp_path, SECRET) == []


async def test_a_tools_answer_and_the_files_of_a_message_are_erased_too(a_house: Houses, tmp_path: Path) -> None:
    async with a_house() as house:
        accepted = await house.say("use it", thread=THREAD)
        run = await house.gateway.next()
        run.say("tool.call.completed", tool_call_id="t1", tool_name="look", result={"found": SECRET})
        run.say("artifact.created", artifact_type="file", name="x.txt", content_base64="emFuemliYXJxdXV4")
        run.say("run.completed")
        await house.story(accepted)
        [user, tool, file] = await house.store.transcript(THREAD, newest_first=False)
        await house.keeping.erase(ANN, THREAD, tool.item_id)
        erased = await house.keeping.erase(ANN, THREAD, file.item_id, artifacts=True)
        assert erased.artifacts == 1
        assert await house.store.artifacts_of(THREAD) == []
        assert words_in(tmp_path, SECRET) == []
        assert user.content == "use it"


async def test_only_who_may_erases_and_only_what_is_over(a_house: Houses) -> None:
    async with a_house() as house:
        accepted = await house.say("wait", thread=THREAD)
        run = await house.gateway.next()
        item = f"{accepted.run_id}.0"
        assert (await refused(house.keeping.erase(ANN, THREAD, item)))[0] is ErrorCode.CONFLICT
        await ended(house, run, THREAD)
        assert (await refused(house.keeping.erase(BOB, THREAD, item)))[0] is ErrorCode.NOT_FOUND
        for unknown in ("nonsense", f"{accepted.run_id}.7", f"{uuid.uuid4()}.0", ""):
            assert (await refused(house.keeping.erase(ANN, THREAD, unknown)))[0] is ErrorCode.NOT_FOUND
        await house.keeping.erase(ADMIN, THREAD, item)


# --- what is past its time --------------------------------------------------------------------------------------------


def retention_of(house: SmallHouse, days: Days, **periods: int) -> Retention:
    return Retention(house.store, house.sessions, house.keeping, clock=days, periods=Periods(**periods))


async def test_a_silent_conversation_is_forgotten_and_its_name_may_begin_anew(a_house: Houses, days: Days) -> None:
    async with a_house() as house:
        await a_turn(house)
        retention = retention_of(house, days, conversations=30)
        days.now += 29 * DAY
        assert "conversations" not in await retention.sweep()
        days.now += 2 * DAY
        assert (await retention.sweep())["conversations"] == 1
        assert await house.store.session(THREAD) is None
        rows = [row for row in await house.store.audit() if row.action == "retention.sweep"]
        assert [(row.resource, row.reason) for row in rows] == [("conversations", "1 past their time")]
        await a_turn(house, "a new beginning")
        assert await house.store.transcript_count(THREAD) == 2


async def test_a_conversation_that_is_taken_up_again_during_a_sweep_is_not_forgotten(
    a_house: Houses, days: Days
) -> None:
    async with a_house() as house:
        silent = str(uuid.uuid4())
        await a_turn(house, thread=silent)
        await a_turn(house)
        days.now += 31 * DAY

        async def meanwhile(thread: str) -> None:
            if thread == silent:
                await a_turn(house, "here I am again", "welcome back")

        keeping = keeping_of(house, meanwhile)
        sweep = Retention(house.store, house.sessions, keeping, clock=days, periods=Periods(conversations=30)).sweep
        assert (await sweep())["conversations"] == 1
        assert await house.store.session(silent) is None
        assert "here I am again" in [item.content for item in await house.store.transcript(THREAD)]


async def test_a_conversation_that_cannot_be_read_keeps_no_other_from_being_forgotten(
    a_house: Houses, days: Days, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_house() as house:
        other = str(uuid.uuid4())
        await a_turn(house)
        await a_turn(house, thread=other)
        days.now += 31 * DAY
        open_session = house.sessions.open

        async def damaged(session_id: str, **more: Any) -> Any:
            if session_id == THREAD:
                raise ValueError("this is no state")
            return await open_session(session_id, **more)

        monkeypatch.setattr(house.sessions, "open", damaged)
        assert (await retention_of(house, days, conversations=30).sweep())["conversations"] == 1
        assert await house.store.session(other) is None
        monkeypatch.undo()


async def test_a_conversation_in_use_loses_its_old_part_and_verifies_from_its_anchor(
    a_house: Houses, days: Days
) -> None:
    async with a_house() as house:
        old = await a_turn(house, "long ago", "indeed")
        days.now += 20 * DAY
        await a_turn(house, "lately", "yes")
        days.now += 15 * DAY
        retention = retention_of(house, days, conversations=30)
        assert (await retention.sweep())["trimmed"] == 1
        assert await retention.sweep() == {}
        items = await house.store.transcript(THREAD, newest_first=False)
        assert [item.content for item in items] == ["lately", "yes"]
        assert await house.store.transcript_count(THREAD) == 2
        trimmed = await house.store.trimmed(THREAD)
        facts = sorted(await house.store.read(THREAD), key=lambda fact: fact.seq)
        assert facts[0].seq == trimmed.seq + 1 == (await house.run(old)).last_seq + 1
        assert facts[-1].kind == ANCHOR
        assert verify(facts, start=trimmed.digest) is None
        await a_turn(house, "still here", "of course")
        days.now += 16 * DAY
        assert (await retention.sweep())["trimmed"] == 1
        assert [item.content for item in await house.store.transcript(THREAD)] == ["of course", "still here"]


async def test_a_run_is_never_cut_in_two_and_a_live_one_is_left_alone(a_house: Houses, days: Days) -> None:
    async with a_house() as house:
        await a_turn(house, "long ago", "indeed")
        accepted = await house.say("this takes long", thread=THREAD)
        run = await house.gateway.next()
        days.now += 31 * DAY
        retention = retention_of(house, days, conversations=30)
        assert await retention.sweep() == {}
        run.message("at last")
        run.say("run.completed")
        await house.story(accepted)
        assert (await retention.sweep())["trimmed"] == 1
        assert [item.content for item in await house.store.transcript(THREAD)] == ["at last", "this takes long"]


async def test_audit_rows_and_calls_go_by_their_own_time_and_zero_keeps_them(a_house: Houses, days: Days) -> None:
    async with a_house() as house:
        ids = ("r1", THREAD, "default", "ann", "one")
        for number, time in enumerate((days.now, days.now + 30 * DAY)):
            await house.store.write(
                [
                    ToolCallRow(f"t{number}", *ids, "look", "completed", b"{}", b"{}", None, time, time),
                    ModelUsageRow(f"m{number}", *ids, "demo", "demo", "invoke", "ok", 1, 1, 2, None, time, time),
                    ApprovalRow(f"a{number}", "default", "ann", THREAD, "r1", "one", "act", b"", b"", time, time),
                    replace(A_DECISION, time=time, reason=str(number)),
                ]
            )
        days.now += 50 * DAY
        assert await retention_of(house, days, conversations=0, calls=0, audit=0).sweep() == {}
        found = await retention_of(house, days, calls=40, audit=40).sweep()
        assert found == {"tool_calls": 1, "model_usage": 1, "approvals": 1, "audit": 1}
        assert [row.call_id for row in await house.store.tool_calls("r1")] == ["t1"]
        assert [row.call_id for row in await house.store.model_usage("r1")] == ["m1"]
        assert await house.store.approval("a0") is None
        left = [row.reason for row in await house.store.audit() if row.action != "retention.sweep"]
        assert left == ["1"]


async def test_a_run_outlives_its_trimmed_words_for_its_own_time(a_house: Houses, days: Days) -> None:
    async with a_house() as house:
        old = await a_turn(house, "long ago", "indeed")
        days.now += 35 * DAY
        await a_turn(house, "lately", "yes")
        retention = retention_of(house, days, conversations=30, audit=100)
        await retention.sweep()
        assert (await house.run(old)).status == "completed"
        assert (await refused(house.keeping.check_run(await house.run(old))))[0] is ErrorCode.CURSOR_EXPIRED
        for _ in range(4):
            days.now += 20 * DAY
            await a_turn(house, "alive", "yes")
        await retention.sweep()
        assert await house.store.run(old.run_id) is None


async def test_a_deletion_that_was_interrupted_is_finished_by_the_next_sweep(tmp_path: Path, days: Days) -> None:
    store = SqliteStore(tmp_path)
    async with small_house(store, gateway=a_gateway(), clock=days) as house:
        await a_turn(house)
        await house.sessions.let_go(THREAD)
        await store.write([SessionGone(THREAD, (), 1.0)])
        assert await store.session(THREAD) is None
        await retention_of(house, days).sweep()
        assert await store.ask(lambda connection: connection.execute("select count(*) from facts").fetchone()[0]) == 0
        assert (
            await store.ask(lambda connection: connection.execute("select count(*) from sessions").fetchone()[0]) == 0
        )
    await store.close()


async def test_words_of_a_follower_that_waits_come_after_a_message_was_erased(a_house: Houses) -> None:
    async with a_house() as house:
        accepted = await a_turn(house, "one", "two")
        last = (await house.run(accepted)).last_seq
        follower = house.tails.follow(THREAD, None, last)
        waiting = asyncio.create_task(follower.next(30))
        await asyncio.sleep(0)
        await house.keeping.erase(ANN, THREAD, f"{accepted.run_id}.0")
        await a_turn(house, "three", "four")
        assert (await waiting)[0].fact.seq == last + 1
        follower.close()
