"""Who is in a conversation: invited, mentioned, switched to, removed; kept through a restart. The loop is real."""

import asyncio
import uuid
from typing import Any

import pytest

from host.scripted import ANN, BOB, ScriptedGateway, SmallHouse, assert_folds, small_house
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.log.chain import restore
from paddock.rules.session.state import SessionState, from_bytes
from stores import QuickStore

pytestmark = pytest.mark.anyio
REJECTING = 'agents: {one: {runner: "plugin:test/one/default", while_busy: reject}}'


def a_thread() -> str:
    return str(uuid.uuid4())


async def a_turn(house: SmallHouse, thread: str, text: str = "hi", **more: Any) -> str:
    """One whole turn; returns the agent that answered."""
    accepted = await house.say(text, thread=thread, **more)
    run = await house.gateway.next()
    run.message(f"answer to {text}")
    run.say("run.completed")
    await house.story(accepted)
    return run.context["conversation"]["bot_id"]


async def state_of(house: SmallHouse, thread: str) -> SessionState:
    session = await house.sessions.open(thread)
    while not session.at_rest:  # what readers find in the log may still be on its way into the state
        await asyncio.sleep(0)
    return session.state


async def test_an_invited_agent_joins_when_the_manager_has_said_so() -> None:
    thread = a_thread()
    async with small_house() as house:
        await a_turn(house, thread)
        answer = await house.control("INVITE_AGENT", thread=thread, agent_id="two")
        assert answer.said[0] == "CONTROL:INVITE_AGENT"
        added = await house.until(thread, "EVENT:AGENT_ADDED")
        assert (added.tx_id, added.read_payload()) == (answer.tx_id, {"agent_id": "two"})
        assert (await state_of(house, thread)).members == ("one", "two")
        assert await house.store.sessions_with_transactions() == []


async def test_an_agent_that_does_not_exist_cannot_be_invited_and_the_error_says_who_could() -> None:
    thread = a_thread()
    async with small_house() as house:
        await a_turn(house, thread)
        await house.control("INVITE_AGENT", thread=thread, agent_id="zoe")
        failed = await house.until(thread, "ERROR:ADD_AGENT_FAILED")
        assert "known are: one, two" in failed.read_payload()["message"]
        assert (await state_of(house, thread)).members == ("one",)


async def test_an_agent_whose_runner_is_missing_cannot_be_invited() -> None:
    thread, gateway = a_thread(), ScriptedGateway()
    async with small_house(gateway=gateway) as house:
        await a_turn(house, thread)
        gateway.missing.add("plugin:test/two/default")
        await house.control("INVITE_AGENT", thread=thread, agent_id="two")
        failed = await house.until(thread, "ERROR:ADD_AGENT_FAILED")
        assert failed.read_payload()["code"] == "agent_not_ready"


async def test_a_leading_name_is_a_mention_and_other_words_with_an_at_sign_are_text() -> None:
    thread = a_thread()
    async with small_house() as house:
        assert await a_turn(house, thread, "hello") == "one"
        assert await a_turn(house, thread, "@two hello") == "two"
        assert await a_turn(house, thread, "@three who are you?") == "two"
        assert await a_turn(house, thread, "write to ann@example.org") == "two"
        assert (await state_of(house, thread)).members == ("one", "two")


async def test_a_removed_agent_is_stopped_first_and_what_is_known_of_it_is_kept() -> None:
    thread = a_thread()
    async with small_house() as house:
        assert await a_turn(house, thread, agent_id="two") == "two"
        accepted = await house.say("more", thread=thread, agent_id="two")
        run = await house.gateway.next()
        await house.control("REMOVE_AGENT", thread=thread, agent_id="two", reason="too loud")
        await run.asked_to_stop.wait()
        assert (await state_of(house, thread)).members == ("two",)
        run.may_stop.set()
        await house.until(thread, "EVENT:AGENT_REMOVED")
        assert (await house.run(accepted)).status == "cancelled"
        assert (await state_of(house, thread)).members == ()
        kept = await house.store.kept_member(thread, "two")
        assert kept is not None
        assert b'"reason":"too loud"' in kept.info
        assert b"last_run_id" in kept.info


async def test_an_agent_that_comes_back_brings_what_was_kept_of_it() -> None:
    thread = a_thread()
    async with small_house() as house:
        await a_turn(house, thread)
        await a_turn(house, thread, agent_id="two")
        await house.control("REMOVE_AGENT", thread=thread, agent_id="two")
        gone = await house.until(thread, "EVENT:AGENT_REMOVED")
        assert (await state_of(house, thread)).active_agent_id == "one"
        await house.control("INVITE_AGENT", thread=thread, agent_id="two", activate=True)
        back = (await house.until(thread, "EVENT:AGENT_ADDED", after=gone.seq)).read_payload()
        assert back["restored"]
        assert back["info"]["last_run_id"]
        await house.until(thread, "CONTROL:SWITCH_AGENT", after=gone.seq)
        assert (await state_of(house, thread)).active_agent_id == "two"


async def test_a_removal_that_cannot_be_kept_is_undone() -> None:
    thread = a_thread()
    async with small_house() as house:
        await a_turn(house, thread)

        async def no_disk(*_: object) -> None:
            raise HostError(ErrorCode.UNAVAILABLE, "the disk is full")

        house.store.write = no_disk  # type: ignore[method-assign]
        await house.control("REMOVE_AGENT", thread=thread, agent_id="one")
        added = await house.until(thread, "EVENT:AGENT_ADDED")
        assert added.read_payload() == {"agent_id": "one", "reason": "remove_failed"}
        assert (await state_of(house, thread)).members == ("one",)


async def test_switching_is_for_members_only() -> None:
    thread = a_thread()
    async with small_house() as house:
        await a_turn(house, thread)
        with pytest.raises(HostError, match="here are: one"):
            await house.control("SWITCH_AGENT", thread=thread, agent_id="two")
        await a_turn(house, thread, agent_id="two")
        assert (await house.control("SWITCH_AGENT", thread=thread, agent_id="one")).said == ("CONTROL:SWITCH_AGENT",)
        assert await a_turn(house, thread) == "one"


async def test_a_foreign_conversation_looks_like_an_unknown_one_to_every_control() -> None:
    thread = a_thread()
    async with small_house() as house:
        await a_turn(house, thread)
        for subtype in ("CANCEL", "SWITCH_AGENT", "INVITE_AGENT", "SESSION_OPEN", "SESSION_CLOSE", "HANDOVER_CONFIRM"):
            for name, who in ((thread, BOB), (a_thread(), ANN)):
                if (subtype, who) == ("SESSION_OPEN", ANN):
                    continue
                with pytest.raises(HostError) as refused:
                    await house.control(subtype, thread=name, who=who, agent_id="one")
                assert refused.value.code is ErrorCode.NOT_FOUND


async def test_a_conversation_can_be_opened_closed_and_opened_again_with_whom_it_had() -> None:
    thread = a_thread()
    async with small_house() as house:
        await house.control("SESSION_OPEN", thread=thread)
        opened = await house.until(thread, "EVENT:SESSION_OPENED")
        assert opened.read_payload() == {"members": ["one"], "active_agent_id": "one"}
        await a_turn(house, thread, agent_id="two")
        await house.control("SESSION_CLOSE", thread=thread)
        closed = await house.until(thread, "EVENT:SESSION_CLOSED")
        with pytest.raises(HostError) as refused:
            await house.say("hi", thread=thread)
        assert refused.value.code is ErrorCode.SESSION_CLOSED
        with pytest.raises(HostError, match="closed"):
            await house.control("SWITCH_AGENT", thread=thread, agent_id="one")
        summary = await house.store.session_summary(thread)
        assert summary is not None
        assert summary.closed
        await house.control("SESSION_OPEN", thread=thread)
        again = await house.until(thread, "EVENT:SESSION_OPENED", after=closed.seq)
        assert again.read_payload() == {"members": ["one", "two"], "active_agent_id": "two"}
        assert await a_turn(house, thread) == "two"


async def test_closing_stops_what_is_live_and_lets_go_of_what_waits() -> None:
    thread = a_thread()
    async with small_house() as house:
        first = await house.say("1", thread=thread)
        second = await house.say("2", thread=thread)
        run = await house.gateway.next()
        await house.control("SESSION_CLOSE", thread=thread)
        assert (await house.run(second)).status == "cancelled"
        run.may_stop.set()
        await house.until(thread, "EVENT:SESSION_CLOSED")
        assert (await house.run(first)).status == "cancelled"


async def test_members_survive_a_restart_and_a_removal_under_way_is_brought_to_its_end() -> None:
    thread, store = a_thread(), QuickStore()
    async with small_house(store) as house:
        await a_turn(house, thread)
        await a_turn(house, thread, agent_id="two")
        await house.say("more", thread=thread, agent_id="two")
        await house.gateway.next()
        await house.control("REMOVE_AGENT", thread=thread, agent_id="two")
        assert await store.sessions_with_transactions() == [thread]
    async with small_house(store) as house:
        assert await house.sessions.recover("host_restarted", "restarted") == 1
        await house.until(thread, "EVENT:AGENT_REMOVED")
        state = await state_of(house, thread)
        assert (state.members, state.active_agent_id, state.transactions) == (("one",), "one", ())


async def test_a_request_to_the_manager_that_was_not_answered_is_made_again_after_a_restart() -> None:
    thread, store = a_thread(), QuickStore()
    async with small_house(store) as house:
        await a_turn(house, thread)
        house.sessions.services.manager.perform = lambda *_: None  # type: ignore[method-assign] - the host dies before it answers
        await house.control("INVITE_AGENT", thread=thread, agent_id="two")
    async with small_house(store) as house:
        await house.sessions.recover("host_restarted", "restarted")
        await house.until(thread, "EVENT:AGENT_ADDED")
        assert (await state_of(house, thread)).members == ("one", "two")


async def test_a_deleted_conversation_is_gone_and_its_id_is_not_used_again() -> None:
    thread = a_thread()
    async with small_house() as house:
        await a_turn(house, thread)
        await house.keeping.delete_thread(ANN, thread)
        with pytest.raises(HostError):
            await house.controls.find(ANN, thread)
        assert await house.store.read(thread) == []
        with pytest.raises(HostError, match="there is no such thread"):
            await a_turn(house, thread)


async def test_a_conversation_in_which_something_goes_on_is_not_deleted() -> None:
    thread = a_thread()
    async with small_house() as house:
        await house.say("hi", thread=thread)
        await house.gateway.next()
        with pytest.raises(HostError, match="close it first"):
            await house.keeping.delete_thread(ANN, thread)


async def test_folding_the_log_gives_the_stored_snapshot() -> None:
    thread = a_thread()
    async with small_house() as house:
        await a_turn(house, thread)
        await house.control("INVITE_AGENT", thread=thread, agent_id="two", activate=True)
        await house.until(thread, "EVENT:AGENT_ADDED")
        await a_turn(house, thread)
        await house.control("REMOVE_AGENT", thread=thread, agent_id="one")
        await house.until(thread, "EVENT:AGENT_REMOVED")
        await a_turn(house, thread)
        claim = await house.store.claim(thread)
        facts = sorted(await house.store.read(thread, limit=10_000), key=lambda fact: fact.seq)
        folded = restore(SessionState(), [fact for fact in facts if fact.seq <= claim.snapshot_seq])
        assert claim.snapshot_seq > 0
        assert folded == from_bytes(claim.snapshot)


async def test_a_snapshot_in_the_middle_of_a_message_goes_on_to_what_the_whole_log_gives() -> None:
    thread = a_thread()
    async with small_house(agents=REJECTING) as house:
        await house.say("hi", thread=thread)
        run = await house.gateway.next()
        run.delta("one ")
        await house.until(thread, "AGENT_OUTPUT:CHUNK")
        await house.story(await house.say("me too", thread=thread))
        run.message("one whole message")
        await house.until(thread, "AGENT_OUTPUT:MESSAGE")
        log = await house.store.look(thread)
        facts = sorted(await house.store.read(thread, limit=10_000), key=lambda fact: fact.seq)
        [message] = [fact for fact in facts if fact.kind == "AGENT_OUTPUT:MESSAGE"]
        assert message.position <= log.snapshot_seq < message.seq
        assert_folds(facts, from_bytes(log.snapshot), log.snapshot_seq)


async def test_a_queued_message_goes_to_the_agent_switched_to_also_when_that_has_not_spoken_since_the_start() -> None:
    thread, store = a_thread(), QuickStore()
    async with small_house(store) as house:
        await a_turn(house, thread)
        await house.control("INVITE_AGENT", thread=thread, agent_id="two")
        await house.until(thread, "EVENT:AGENT_ADDED")
    async with small_house(store) as house:
        await house.say("first", thread=thread)
        first = await house.gateway.next()
        waiting = await house.say("second", thread=thread)
        await house.control("SWITCH_AGENT", thread=thread, agent_id="two")
        first.say("run.completed")
        second = await house.gateway.next()
        assert second.context["conversation"]["bot_id"] == "two"
        second.say("run.completed")
        assert (await house.story(waiting))[-1].fact.kind == "AGENT_OUTPUT:FINAL"
