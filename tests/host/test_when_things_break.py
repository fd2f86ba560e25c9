"""Storage away, runners that hang, mistakes of our own: every accepted run still ends and nobody waits for ever."""

import asyncio
import random
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import paddock.host.runs.live_run as live_run_module
import paddock.host.session.memory as loops_module
import paddock.host.session.sessions as sessions_module
import paddock.host.streams.tails as tails_module
from host.scripted import ANN, AtRunner, ScriptedGateway, SmallHouse, small_house
from paddock.host.streams.tails import Tails
from paddock.http_api.ag_ui.events import AgUiPeer, frames
from paddock.ports import Batch, Caller
from paddock.rules.errors import ErrorCode, HostError, StorageUnavailableError
from paddock.rules.session.commands import SessionTimeouts
from paddock.rules.session.messages import RunFailed
from paddock.storage.sqlite import SqliteStore
from paddock_sdk.protocol.manifest import AgentRunnerManifest
from patience import at_most
from stores import QuickStore, reached_otherwise

pytestmark = pytest.mark.anyio
HERE = Caller("test/one", "c1")
IMPATIENT = 'default_agent: one\nagents:\n  one: {runner: "plugin:test/one/default", deadline_seconds: 0.2}\n'


def a_thread() -> str:
    return str(uuid.uuid4())


async def until(true: Callable[[], object], seconds: float = 30.0) -> None:
    async with asyncio.timeout(seconds):
        while not true():
            await asyncio.sleep(0.01)


class FlakyStore(QuickStore):
    """A store that can be taken away."""

    down = reads_down = False
    silent = 0
    """How many of the next commits happen and are never answered, as when the database goes just then."""

    async def append(self, batch: Batch) -> None:
        if self.down:
            raise StorageUnavailableError("full")
        await super().append(batch)
        if self.silent:
            self.silent -= 1
            raise StorageUnavailableError("the connection was lost")

    async def write(self, rows) -> None:
        if self.down:
            raise StorageUnavailableError("full")
        await super().write(rows)

    async def state_snapshot(self, scope_keys, *, max_bytes: int):
        if self.reads_down:
            raise StorageUnavailableError("cannot read")
        return await super().state_snapshot(scope_keys, max_bytes=max_bytes)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions_module, "RETRY_SECONDS", 0.02)


async def ended(house: SmallHouse, accepted) -> tuple[str, str | None]:
    await house.story(accepted)
    run = await house.run(accepted)
    return run.status, run.code


def brought_back() -> list[asyncio.Task[object]]:
    """Sessions that are still being brought back after a failed write."""
    return [task for task in asyncio.all_tasks() if "_bring_back" in repr(task.get_coro())]


async def taken_over(store: FlakyStore, thread: str) -> None:
    """Another host, which can reach the same store, ends what goes on in a conversation."""
    async with small_house(reached_otherwise(store)) as elsewhere:
        await elsewhere.sessions.take_over([(thread, "host_lost", "its host is gone")])


async def test_a_run_whose_state_cannot_be_read_ends() -> None:
    store = FlakyStore()
    async with small_house(store) as house:
        store.reads_down = True
        assert await ended(house, await house.say(thread=a_thread())) == ("failed", "runtime_error")


async def test_the_deadline_holds_while_a_run_is_still_starting() -> None:
    class NeverStarts(ScriptedGateway):
        async def start_run(self, *_: Any, **__: Any) -> AtRunner:
            await asyncio.sleep(3600)
            raise AssertionError

    async with small_house(gateway=NeverStarts(), agents=IMPATIENT) as house:
        assert await ended(house, await house.say(thread=a_thread())) == ("failed", "deadline_exceeded")


@pytest.mark.usefixtures("quick")
async def test_after_the_store_was_away_only_the_run_it_interrupted_fails() -> None:
    store, thread = FlakyStore(), a_thread()
    async with small_house(store) as house:
        first = await house.say("a", thread=thread)
        at_runner = await house.gateway.next()
        second = await house.say("b", thread=thread)
        store.down = True
        at_runner.delta("x")
        await until(lambda: at_runner.forced)
        for _ in range(3):
            with pytest.raises(HostError) as refused:
                await house.say("c", thread=thread)
            assert refused.value.code is ErrorCode.UNAVAILABLE
        assert len(brought_back()) == 1
        store.down = False
        assert await ended(house, first) == ("failed", "storage_unavailable")
        later = await house.gateway.next()
        later.message("fine")
        later.say("run.completed")
        assert await ended(house, second) == ("completed", None)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("replaced", [True, False])
async def test_an_owner_that_hears_no_answer_to_a_write_is_on_record_as_refused_only_if_another_went_on(
    replaced: bool,
) -> None:
    store, thread = FlakyStore(), a_thread()
    async with small_house(store) as house:
        run = await house.say("a", thread=thread)
        at_runner = await house.gateway.next()
        await house.until(thread, "EVENT:AGENT_STARTED")
        store.down = True
        at_runner.delta("x")
        await until(lambda: at_runner.forced)
        if replaced:
            await taken_over(store, thread)
        store.down = False
        await until(lambda: not brought_back(), 30)
        assert (await house.run(run)).status == "failed"  # whoever ended it; who follows here may not have heard
        await house.audit.flush()
        refused = [row for row in await store.audit(limit=100) if row.result == "stale_owner"]
        assert [(row.session_id, row.workspace_id) for row in refused] == [(thread, ANN.workspace_id)] * replaced


async def test_a_request_that_could_not_be_recorded_leaves_no_run_behind() -> None:
    store = FlakyStore()
    async with small_house(store) as house:
        store.down = True
        for _ in range(3):
            with pytest.raises(HostError):
                await house.say(thread=a_thread())
        assert not house.runs.live


@pytest.mark.usefixtures("quick")
async def test_a_run_that_is_on_record_without_anybody_knowing_ends() -> None:
    store, thread = FlakyStore(), a_thread()
    async with small_house(store) as house:
        store.silent = 1
        with pytest.raises(HostError):
            await house.say(thread=thread, run="r")
        accepted = await house.say(thread=thread, run="r")
        assert await ended(house, accepted) == ("failed", "storage_unavailable")
        assert house.gateway.started.empty()


@pytest.mark.usefixtures("quick")
async def test_a_turn_that_began_without_anybody_knowing_ends_though_nobody_asks_again() -> None:
    store, thread = FlakyStore(), a_thread()
    async with small_house(store) as house:
        first = await house.say("a", thread=thread)
        at_runner = await house.gateway.next()
        second = await house.say("b", thread=thread)
        store.silent = 1
        at_runner.say("run.completed")  # in one commit with the beginning of the second
        assert await ended(house, second) == ("failed", "storage_unavailable")
        assert await ended(house, first) == ("completed", None)


async def test_a_turn_that_an_earlier_owner_left_ends_whatever_its_session_is_opened_for() -> None:
    store, thread = QuickStore(), a_thread()
    async with small_house(store) as house:
        accepted = await house.say(thread=thread, run="r")
    async with small_house(store) as house:  # and nobody looks for what was left
        assert (await house.say(thread=thread, run="r")).run_id == accepted.run_id
        assert (await ended(house, accepted))[0] == "failed"


async def test_a_session_that_failed_answers_at_once() -> None:
    store, thread = FlakyStore(), a_thread()
    async with small_house(store) as house:
        accepted = await house.say(thread=thread)
        session = await house.sessions.open(thread)
        store.down = True
        (await house.gateway.next()).delta("x")
        await until(lambda: session.failed)
        with pytest.raises(HostError):
            await asyncio.wait_for(session.record(RunFailed(accepted.run_id, "runner.crashed", "y")), 30)


async def test_what_is_on_record_is_answered_even_when_starting_it_goes_wrong() -> None:
    class Broken(ScriptedGateway):
        def start_at_once(self, *_: Any, **__: Any) -> AtRunner | None:
            raise RuntimeError("a mistake of ours")

    async with small_house(gateway=Broken({"history": ["page"]})) as house:
        assert await asyncio.wait_for(house.say(thread=a_thread()), 30)


async def test_nothing_is_granted_after_the_last_word_of_a_run() -> None:
    async with small_house() as house:
        await house.say(thread=a_thread())
        run = await house.gateway.next()
        run.say("run.completed")
        with pytest.raises(HostError) as refused:
            await house.calls(HERE, "history.page", {"run_id": run.run_id}, 10)
        assert refused.value.code is ErrorCode.UNAUTHORIZED


async def test_a_runner_that_refuses_to_cancel_is_still_stopped_when_its_run_ends() -> None:
    async with small_house() as house:
        accepted = await house.say(thread=a_thread())
        run = await house.gateway.next()

        async def refuse(reason: str) -> bool:
            run.asked_to_stop.set()
            return False

        run.cancel = refuse
        await house.inbox.cancel(await house.run(accepted), ANN)
        await run.asked_to_stop.wait()
        run.say("message.delta", chunk=3)
        await house.story(accepted)
        await until(lambda: run.released or run.forced)


async def test_state_updates_keep_to_the_caps_and_leave_an_audit_row_each() -> None:
    async with small_house() as house:
        accepted = await house.say(thread=a_thread())
        run = await house.gateway.next()
        for index in range(20):
            run.say("state.updated", scope="conversation", key=f"k{index}", value="v" * 250_000)
        run.say("run.completed")
        await house.story(accepted)
        rows = [row.result for row in await house.store.audit(run_id=accepted.run_id) if row.action == "state.updated"]
        assert sorted(rows) == ["allowed"] * 16 + ["payload_too_large"] * 4


async def test_a_state_that_a_run_updates_again_and_again_counts_once() -> None:
    async with small_house() as house:
        accepted = await house.say(thread=a_thread())
        run = await house.gateway.next()
        for index in range(20):
            run.say("state.updated", scope="conversation", key="checkpoint", value=f"{index:03}" + "v" * 250_000)
        run.say("run.completed")
        await house.story(accepted)
        rows = [row.result for row in await house.store.audit(run_id=accepted.run_id) if row.action == "state.updated"]
        assert rows == ["allowed"] * 20


async def test_a_run_may_not_say_more_than_can_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_run_module, "MAX_RUN_BYTES", 1000)
    async with small_house() as house:
        accepted = await house.say(thread=a_thread())
        run = await house.gateway.next()
        for _ in range(11):
            run.delta("x")
        assert await ended(house, accepted) == ("failed", "payload_too_large")


async def test_audit_rows_wait_for_a_store_that_was_away() -> None:
    store = FlakyStore()
    async with small_house(store) as house:
        accepted = await house.say(thread=a_thread())
        run = await house.gateway.next()
        store.down = True
        await house.calls(HERE, "history.page", {"run_id": run.run_id}, 10)
        await asyncio.sleep(0.05)
        store.down = False
        run.say("run.completed")
        await house.story(accepted)
        assert "history.page" in [row.action for row in await store.audit(run_id=accepted.run_id)]


async def test_rows_that_were_to_be_written_with_the_end_of_a_run_are_not_lost_when_that_fails() -> None:
    store = FlakyStore()
    async with small_house(store) as house:
        accepted = await house.say(thread=a_thread())
        run = await house.gateway.next()
        store.down = True
        await house.calls(HERE, "history.page", {"run_id": run.run_id}, 10)
        session = await house.sessions.open(accepted.session_id)
        run.say("run.completed")  # takes the row along, and is refused
        await until(lambda: session.failed)
        store.down = False
        assert await ended(house, accepted) == ("failed", "storage_unavailable")
        async with asyncio.timeout(30):
            while "history.page" not in [row.action for row in await store.audit(run_id=accepted.run_id)]:
                await asyncio.sleep(0.01)


async def test_idle_sessions_are_forgotten_however_they_were_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops_module, "IDLE_SESSIONS", 4)
    async with small_house() as house:
        threads = [a_thread() for _ in range(12)]
        for thread in threads:
            accepted = await house.say("hi", thread=thread, run="r")
            (await house.gateway.next()).say("run.completed")
            await house.story(accepted)
        for thread in threads:
            await house.say("hi", thread=thread, run="r")
        assert len(house.sessions.loops) <= 5


async def test_recovery_of_one_session_does_not_wait_for_the_runner_of_another() -> None:
    store, first, second = QuickStore(), a_thread(), a_thread()
    async with small_house(store) as house:
        await house.say("a", thread=first)
        await house.say("queued", thread=first)
        other = await house.say("b", thread=second)

    class NeverReady(ScriptedGateway):
        async def manifest(self, runner_id: str, workspace: str = "") -> AgentRunnerManifest:
            await asyncio.Event().wait()
            raise AssertionError

    async with small_house(store, gateway=NeverReady()) as house:
        await asyncio.wait_for(house.sessions.recover("host_restarted", "x"), 30)
        assert (await house.run(other)).status == "failed"


async def test_after_a_restart_a_queued_turn_goes_to_whoever_is_active_then() -> None:
    agents = "default_agent: one\nagents:\n" + "".join(
        f'  {name}: {{runner: "plugin:test/{name}/default"}}\n' for name in ("one", "two")
    )
    store, thread = QuickStore(), a_thread()
    async with small_house(store, agents=agents) as house:
        await house.say("a", thread=thread)
        asked = await house.say("b", thread=thread, agent_id="two")
        last = await house.say("c", thread=thread)
        await house.inbox.cancel(await house.run(asked), ANN)
    async with small_house(store, agents=agents) as house:
        await house.sessions.recover("host_restarted", "x")
        assert (await house.gateway.next()).run_id == last.run_id


async def test_another_program_that_holds_the_database_does_not_stop_the_event_loop(tmp_path: Path) -> None:
    async with small_house(SqliteStore(tmp_path)) as house:
        await house.say(thread=a_thread())
        hold = (
            "import sqlite3, sys\nheld = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
            "held.execute('begin immediate')\nprint('held', flush=True)\nsys.stdin.read()"
        )
        file = str(tmp_path / "paddock.db")
        holder = subprocess.Popen([sys.executable, "-c", hold, file], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            assert holder.stdout is not None
            holder.stdout.readline()
            began = time.monotonic()
            with pytest.raises(HostError):
                await house.say(thread=a_thread())
            assert time.monotonic() - began < at_most(1)
        finally:
            holder.kill()
            holder.wait()
        await until(house.store.healthy)
        await house.store.close()


async def frames_after(tails: Tails, accepted, seq: int, k: int) -> list[bytes]:
    follower, said = tails.follow(accepted.session_id, accepted.run_id, seq - 1), []
    while True:
        for entry in await follower.next(30):
            these = frames(entry.fact, AgUiPeer("1", "t", "r", "1"))
            said += these[k + 1 :] if entry.fact.seq == seq else these
            if entry.fact.kind in {"AGENT_OUTPUT:FINAL", "ERROR:RUN_FAILED", "EVENT:CANCELED"}:
                follower.close()
                return said


@pytest.mark.parametrize("seed", range(20))
async def test_a_replay_from_any_place_gives_what_the_live_stream_gave(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(tails_module, "PAGE", chance.choice([1, 2, 3, 256]))
    store = SqliteStore(tmp_path)
    async with small_house(store) as house:
        accepted = await house.say("q", thread=a_thread())
        run = await house.gateway.next()
        live = asyncio.ensure_future(frames_after(house.tails, accepted, accepted.first_seq, -1))
        await _babble(run, chance)
        said = await live
        assert await frames_after(Tails(store), accepted, accepted.first_seq, -1) == said
        for index, frame in enumerate(said[:-1]):
            _, seq, k = frame.split(b"\n")[0][4:].split(b".")
            assert await frames_after(Tails(store), accepted, int(seq), int(k)) == said[index + 1 :]
        await store.close()


async def _babble(run: AtRunner, chance: random.Random) -> None:
    """A run that says all sorts of things, with pauses, and ends one way or another."""
    text = ""
    for _ in range(chance.randint(1, 12)):
        match chance.choice(["delta", "delta", "delta", "whole", "revised", "tool", "future"]):
            case "delta":
                piece = chance.choice(["a", "bb", "é漢", ""])
                text += piece
                run.delta(piece)
            case "whole":
                run.message(text + chance.choice(["", "!"]))
                text = ""
            case "revised":
                run.message(chance.choice(["other", "", text[:1]]))
                text = ""
            case "tool":
                run.say("tool.call.started", tool_call_id="t", tool_name="n", parameters={"a": 1})
            case _:
                run.say("of.the.future")
        if chance.random() < 0.6:
            await asyncio.sleep(0.008)
    endings = [
        lambda: run.say("run.completed"),
        lambda: run.say("run.completed", message={"role": "assistant", "content": text + "?"}),
        lambda: run.say("run.failed", message="no"),
        lambda: run.listener.lost("runner.crashed", "gone"),
    ]
    chance.choice(endings)()


async def test_an_input_that_waits_too_long_for_its_turn_fails_where_it_stands() -> None:
    now = [1000.0]
    thread = a_thread()
    async with small_house(clock=lambda: now[0]) as house:
        await house.say("a", thread=thread)
        run = await house.gateway.next()
        waiting = await house.say("b", thread=thread)
        now[0] += SessionTimeouts().queue - 1
        house.sessions.expire_queued()
        fresh = await house.say("c", thread=thread)
        now[0] += 2
        house.sessions.expire_queued()
        assert await ended(house, waiting) == ("failed", "deadline_exceeded")
        run.say("run.completed")
        assert (await house.gateway.next()).run_id == fresh.run_id


async def test_time_in_which_no_host_was_there_is_no_time_in_line() -> None:
    now, store, thread = [1000.0], QuickStore(), a_thread()
    async with small_house(store, clock=lambda: now[0]) as house:
        await house.say("a", thread=thread)
        waiting = [await house.say(text, thread=thread) for text in ("b", "c")]
    now[0] += SessionTimeouts().queue * 2
    async with small_house(store, clock=lambda: now[0]) as house:
        await house.sessions.recover("host_restarted", "x")
        first = await house.gateway.next()
        house.sessions.expire_queued()
        first.say("run.completed")
        second = await house.gateway.next()
        assert [first.run_id, second.run_id] == [one.run_id for one in waiting]


async def test_a_cancel_is_on_the_audit_trail() -> None:
    async with small_house() as house:
        accepted = await house.say(thread=a_thread())
        (await house.gateway.next()).may_stop.set()
        await house.inbox.cancel(await house.run(accepted), ANN)
        assert await ended(house, accepted) == ("cancelled", "cancelled")
        assert "run.cancel" in [row.action for row in await house.store.audit(run_id=accepted.run_id)]


@pytest.mark.usefixtures("quick")
async def test_a_session_that_cannot_be_read_keeps_the_host_from_nothing_and_ends_when_it_can() -> None:
    class Unreadable(QuickStore):
        broken: str | None = None

        async def claim(self, session_id: str):
            if session_id == self.broken:
                raise ValueError("this cannot be folded")
            return await super().claim(session_id)

    store, bad, good = Unreadable(), a_thread(), a_thread()
    async with small_house(store) as house:
        first, second = await house.say(thread=bad), await house.say(thread=good)
    store.broken = bad
    async with small_house(store) as house:
        await asyncio.wait_for(house.sessions.recover("host_restarted", "x"), 30)
        assert (await house.run(second)).code == "host_restarted"
        assert (await house.run(first)).status == "running"
        store.broken = None
        assert await ended(house, first) == ("failed", "host_restarted")


async def test_a_cursor_too_large_for_the_store_is_not_found_like_any_other(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    async with small_house(store) as house:
        await house.say(thread=a_thread())
        run = await house.gateway.next()
        with pytest.raises(HostError) as refused:
            await house.calls(HERE, "history.page", {"run_id": run.run_id, "before_cursor": "h" + "f" * 20}, 10)
        assert refused.value.code is ErrorCode.NOT_FOUND
        await store.close()


async def test_a_mistake_in_the_writer_refuses_its_group_and_the_next_one_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(tmp_path)
    async with small_house(store) as house:

        def forget(*_: object) -> None:
            raise MemoryError

        with monkeypatch.context() as broken:
            broken.setattr("paddock.storage.sqlite.writer.write_group", forget)
            with pytest.raises(HostError):
                await asyncio.wait_for(house.say(thread=a_thread()), 30)
            assert not store.healthy()
        assert await asyncio.wait_for(house.say(thread=a_thread()), 30)
        assert store.healthy()
        await store.close()


async def test_a_host_that_may_have_lost_its_runs_starts_none_until_it_knows() -> None:
    sure = False
    async with small_house(held=lambda: sure) as house:
        accepted = await house.say(thread=a_thread())
        await asyncio.sleep(0)
        assert house.gateway.started.empty()
        sure = True
        run = await house.gateway.next()
        assert run.run_id == accepted.run_id
        run.say("run.completed")
        await house.story(accepted)


async def test_a_run_that_was_lost_before_it_was_started_is_never_started() -> None:
    sure = False
    async with small_house(held=lambda: sure) as house:
        accepted = await house.say(thread=a_thread())
        [run] = house.runs.live
        starting = run.starting
        assert starting is not None
        assert house.sessions.drop_all(leaving=True) == 1
        sure = True
        await asyncio.wait([starting], timeout=30)
        assert house.gateway.started.empty()
        assert (await house.run(accepted)).status == "running"  # whoever took it over ends it
