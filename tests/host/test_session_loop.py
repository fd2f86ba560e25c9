"""One message walks through the loop: what is recorded, in which order, in how many commits."""

import asyncio
import gc
import uuid

import pytest

from host.scripted import ANN, BOB, CountingStore, ScriptedGateway, small_house
from paddock.host.runs.live_run import LiveRun
from paddock.host.session.arrivals import NewRun
from paddock.host.session.draft import Draft
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.log.chain import verify
from paddock.rules.session.commands import SessionTimeouts
from stores import QuickStore

pytestmark = pytest.mark.anyio


def a_thread() -> str:
    return str(uuid.uuid4())


async def test_a_short_run_is_answered_in_two_commits() -> None:
    store = CountingStore()
    async with small_house(store) as house:
        accepted = await house.say("hello", thread=a_thread())
        run = await house.gateway.next()
        run.delta("hel")
        run.message("hello")
        run.say("run.completed")
        kinds = [entry.fact.kind for entry in await house.story(accepted)]
        assert kinds == [
            "CONTROL:SESSION_OPENED",
            "USER_INPUT",
            "USER_INPUT",
            "EVENT:TURN_ACCEPTED",
            "CONTROL:INPUT_ACK",
            "EVENT:AGENT_STARTED",
            "AGENT_OUTPUT:MESSAGE",
            "AGENT_OUTPUT:FINAL",
        ]
        assert store.commits == 2
        assert (await house.run(accepted)).status == "completed"


async def test_a_run_that_need_not_wait_looks_nothing_up_to_know_where_it_began() -> None:
    store, thread = CountingStore(), a_thread()
    async with small_house(store) as house:
        for word in ("one", "two"):
            accepted = await house.say(word, thread=thread)
            run = await house.gateway.next()
            run.message(word)
            run.say("run.completed")
            await house.story(accepted)
        assert store.reads == 0


async def test_a_run_that_ended_leaves_nothing_to_the_garbage_collector() -> None:
    async with small_house() as house:
        gc.collect()
        gc.disable()
        earlier = {id(kept) for kept in gc.get_objects() if isinstance(kept, Draft | LiveRun)}
        try:
            accepted = await house.say("hello", thread=a_thread())
            run = await house.gateway.next()
            run.message("hello")
            run.say("run.completed")
            await house.story(accepted)
            del run
            await asyncio.sleep(0)
            left = [found for found in gc.get_objects() if isinstance(found, Draft | LiveRun)]
            assert not [found for found in left if id(found) not in earlier]
        finally:
            gc.enable()


async def test_the_answer_and_the_question_are_in_the_transcript_whether_streamed_or_not() -> None:
    thread = a_thread()
    async with small_house() as house:
        accepted = await house.say("one", thread=thread)
        run = await house.gateway.next()
        follower = house.tails.follow(thread, accepted.run_id, 0)
        run.delta("a")
        while not any(entry.fact.is_delta for entry in await follower.next(2)):
            pass
        run.delta("b")
        run.say("run.completed")
        await house.story(accepted)
        items = await house.store.transcript(thread, newest_first=False)
        assert [(item.role, item.content) for item in items] == [("user", "one"), ("assistant", "ab")]


async def test_pieces_are_gone_from_the_log_once_the_message_is_whole_and_the_chain_still_verifies() -> None:
    thread = a_thread()
    async with small_house() as house:
        accepted = await house.say(thread=thread)
        run = await house.gateway.next()
        follower = house.tails.follow(thread, accepted.run_id, 0)
        for piece in ("x", "y", "z"):
            run.delta(piece)
            while not any(entry.fact.is_delta for entry in await follower.next(2)):
                pass
        run.message("xyz!")
        run.say("run.completed")
        live = await house.story(accepted, after=accepted.first_seq - 1)
        stored = await house.store.read(thread)
        assert not any(fact.is_delta for fact in stored)
        assert verify(sorted(stored, key=lambda fact: fact.seq)) is None
        house.tails.forget(thread)
        replayed = await house.story(accepted, after=accepted.first_seq - 1)
        assert [(entry.fact.seq, entry.fact.kind) for entry in replayed] == [
            (entry.fact.seq, entry.fact.kind) for entry in live
        ]


async def test_the_same_run_id_twenty_times_at_once_is_one_run_with_one_answer() -> None:
    thread = a_thread()
    async with small_house() as house:
        answers = await asyncio.gather(*(house.say("hi", thread=thread, run="r1") for _ in range(20)))
        assert len(set(answers)) == 1
        assert answers[0].created
        await house.gateway.next()
        assert house.gateway.started.empty()
        assert await house.say("hi", thread=thread, run="r1") == answers[0]


async def test_the_same_run_id_with_another_body_is_a_conflict() -> None:
    thread = a_thread()
    async with small_house() as house:
        await house.say("hi", thread=thread, run="r1")
        with pytest.raises(HostError) as refused:
            await house.say("ho", thread=thread, run="r1")
        assert refused.value.code is ErrorCode.CONFLICT


async def test_a_foreign_thread_looks_like_an_unknown_one() -> None:
    thread = a_thread()
    async with small_house() as house:
        accepted = await house.say(thread=thread, who=ANN)
        with pytest.raises(HostError) as refused:
            await house.say(thread=thread, who=BOB)
        with pytest.raises(HostError) as unseen:
            await house.view.find(BOB, accepted.run_id)
        assert refused.value.code is unseen.value.code is ErrorCode.NOT_FOUND


async def test_a_second_message_waits_its_turn_and_is_answered_after_the_first() -> None:
    thread = a_thread()
    async with small_house() as house:
        first = await house.say("1", thread=thread)
        second = await house.say("2", thread=thread)
        assert (await house.run(second)).status == "queued"
        run = await house.gateway.next()
        assert house.gateway.started.empty()
        run.say("run.completed")
        await house.story(first)
        later = await house.gateway.next()
        assert later.run_id == second.run_id
        assert later.context["context"]["has_history_before"]
        later.say("run.completed")
        await house.story(second)
        assert (await house.run(second)).status == "completed"


async def test_a_cancelled_run_keeps_its_words_and_ends_once_the_agent_has_stopped() -> None:
    thread = a_thread()
    async with small_house() as house:
        accepted = await house.say(thread=thread)
        run = await house.gateway.next()
        run.delta("half")
        still_running = await house.inbox.cancel(await house.run(accepted), ANN)
        assert still_running.status == "running"
        await run.asked_to_stop.wait()
        run.may_stop.set()
        kinds = [entry.fact.kind for entry in await house.story(accepted)]
        assert kinds[-2:] == ["CONTROL:CANCEL_ACK", "EVENT:CANCELED"]
        assert (await house.run(accepted)).status == "cancelled"
        assert run.released
        items = await house.store.transcript(thread, limit=1)
        assert (items[0].content, items[0].metadata) == ("half", b'{"partial":true}')


async def test_nothing_a_runner_says_after_its_end_is_recorded() -> None:
    async with small_house() as house:
        accepted = await house.say(thread=a_thread())
        run = await house.gateway.next()
        run.say("run.completed")
        await house.story(accepted)
        run.delta("late")
        run.say("run.failed", code="x", message="y")
        again = await house.say(thread=accepted.session_id)
        assert (await house.gateway.next()).run_id == again.run_id
        facts = await house.store.read(accepted.session_id, run_id=accepted.run_id)
        assert facts[-1].kind == "AGENT_OUTPUT:FINAL"
        assert any(row.action == "output.dropped" for row in await house.store.audit(run_id=accepted.run_id))


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (lambda run: run.say("run.failed", code="runner.error", message="no"), "runner.error"),
        (lambda run: run.say("run.failed", code="old", error="old spelling"), "old"),
        (lambda run: run.listener.lost("runner.crashed", "exit 1"), "runner.crashed"),
        (lambda run: run.say("message.delta", chunk="not an object"), "runner.protocol_error"),
    ],
)
async def test_a_run_that_fails_says_so_once(said, code: str) -> None:
    async with small_house() as house:
        accepted = await house.say(thread=a_thread())
        said(await house.gateway.next())
        await house.story(accepted)
        run = await house.run(accepted)
        assert (run.status, run.code) == ("failed", code)


async def test_a_result_type_from_the_future_is_ignored_and_noted() -> None:
    async with small_house() as house:
        accepted = await house.say(thread=a_thread())
        run = await house.gateway.next()
        run.say("message.hologram", anything=1)
        run.say("run.completed")
        await house.story(accepted)
        assert (await house.run(accepted)).status == "completed"
        assert any(row.action == "result.ignored" for row in await house.store.audit(run_id=accepted.run_id))


async def test_a_runner_nobody_offers_fails_the_run_and_says_which() -> None:
    gateway = ScriptedGateway()
    gateway.missing.add("plugin:test/one/default")
    async with small_house(gateway=gateway) as house:
        accepted = await house.say(thread=a_thread())
        await house.story(accepted)
        run = await house.run(accepted)
        assert (run.status, run.code) == ("failed", "runner.not_found")


async def test_an_unfinished_run_of_an_earlier_owner_fails_with_its_words_kept() -> None:
    store = QuickStore()
    thread = a_thread()
    async with small_house(store) as before:
        accepted = await before.say(thread=thread)
        queued = await before.say("next", thread=thread)
        run = await before.gateway.next()
        follower = before.tails.follow(thread, accepted.run_id, 0)
        run.delta("so far")
        while not any(entry.fact.is_delta for entry in await follower.next(2)):
            pass
    async with small_house(store) as after:
        assert await after.sessions.recover("host_restarted", "restarted") == 1
        await after.story(accepted)
        run_row = await after.run(accepted)
        assert (run_row.status, run_row.code) == ("failed", "host_restarted")
        items = await store.transcript(thread, newest_first=False)
        assert "so far" in [item.content for item in items]
        later = await after.gateway.next()
        assert (later.run_id, later.context["input"]["text"]) == (queued.run_id, "next")


async def test_what_a_run_updates_in_its_state_is_there_for_the_next_run() -> None:
    thread = a_thread()
    async with small_house() as house:
        accepted = await house.say(thread=thread)
        run = await house.gateway.next()
        run.say("state.updated", scope="conversation", key="external.session_id", value="abc")
        run.say("state.updated", scope="workspace", key="x", value="refused")
        run.say("run.completed")
        await house.story(accepted)
        await house.say(thread=thread)
        assert (await house.gateway.next()).context["state"]["conversation"] == {"external.session_id": "abc"}


async def test_credit_comes_back_as_results_are_recorded() -> None:
    async with small_house() as house:
        accepted = await house.say(thread=a_thread())
        run = await house.gateway.next()
        for _ in range(100):
            run.delta("x")
        run.message("x" * 100)
        run.say("run.completed")
        await house.story(accepted)
        assert run.credit >= 64 or run.released


async def test_a_run_that_ends_without_its_runner_is_stopped_at_the_runner_too() -> None:
    now = [1000.0]
    agents = 'agents:\n  one: {runner: "plugin:test/one/default", deadline_seconds: 0.05}\n'
    async with small_house(agents=agents, clock=lambda: now[0]) as house:
        accepted = await house.say(thread=a_thread())
        run = await house.gateway.next()
        await house.story(accepted)
        assert (await house.run(accepted)).code == "deadline_exceeded"
        await asyncio.wait_for(run.asked_to_stop.wait(), 30)
        assert not run.released
        run.may_stop.set()
        await asyncio.wait_for(_until(lambda: run.released), 30)


@pytest.mark.spec("wait/has-a-timer")
async def test_how_long_a_session_waits_for_an_ack_and_for_its_end_can_be_set() -> None:
    async with small_house(timeouts=SessionTimeouts(input_ack=0.05, cancel_ack=0.05)) as house:
        silent = await house.say(thread=a_thread())
        await house.gateway.next(ack=False)
        await house.until(silent.session_id, "ERROR:ROUTE_TIMEOUT")
        assert (await house.run(silent)).code == "route_timeout"
        stubborn = await house.say(thread=a_thread())
        run = await house.gateway.next()
        await house.inbox.cancel(await house.run(stubborn), ANN)
        await house.story(stubborn)
        await asyncio.wait_for(_until(lambda: run.forced), 30)


async def test_a_run_that_is_over_and_does_not_stop_is_made_to() -> None:
    agents = 'agents:\n  one: {runner: "plugin:test/one/default", deadline_seconds: 0.05}\n'
    async with small_house(agents=agents, timeouts=SessionTimeouts(cancel_ack=0.05)) as house:
        accepted = await house.say(thread=a_thread())
        run = await house.gateway.next()
        await house.story(accepted)
        await asyncio.wait_for(_until(lambda: run.forced), 30)


async def _until(true) -> None:
    while not true():
        await asyncio.sleep(0)


async def test_what_cannot_be_stored_is_refused_and_the_conversation_goes_on() -> None:
    thread = a_thread()
    async with small_house() as house:
        with pytest.raises(HostError):
            await asyncio.wait_for(house.say("x", thread=thread, params={"bad": object()}), 30)
        accepted = await house.say("fine", thread=thread)
        assert (await house.gateway.next()).run_id == accepted.run_id


@pytest.mark.spec("route/mention-is-cut")
async def test_an_agent_gets_the_words_without_its_name_and_the_log_keeps_them_whole() -> None:
    async with small_house() as house:
        thread = str(uuid.uuid4())
        accepted = await house.say("@two what is the time?", thread=thread)
        run = await house.gateway.next()
        assert run.context["conversation"]["bot_id"] == "two"
        assert run.context["input"]["text"] == "what is the time?"
        assert run.context["input"]["contents"] == [{"type": "text", "text": "what is the time?"}]
        [item] = await house.store.transcript(thread)
        assert item.content == "@two what is the time?"
        run.say("run.completed")
        await house.story(accepted)
        parts = [{"type": "text", "text": "@one look"}, {"type": "text", "text": "@one here"}]
        await house.inbox.accept(
            NewRun(ANN, thread, "r2", b"2" * 32, message={"id": "m2", "content": parts}, text="@one look\n@one here")
        )
        second = await house.gateway.next()
        assert [part["text"] for part in second.context["input"]["contents"]] == ["look", "@one here"]


@pytest.mark.spec("route/mention-is-cut")
async def test_the_name_of_another_agent_is_text() -> None:
    async with small_house() as house:
        await house.say("@two is not asked", thread=str(uuid.uuid4()), agent_id="one")
        assert (await house.gateway.next()).context["input"]["text"] == "@two is not asked"
