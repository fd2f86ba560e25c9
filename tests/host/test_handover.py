"""One agent asks for another; the user decides; the other one gets what was said, as data with its origin."""

import uuid
from typing import Any

import pytest

from host.scripted import AtRunner, SmallHouse, small_house
from paddock.rules.errors import HostError
from paddock.rules.log.chain import StoredFact
from stores import QuickStore

pytestmark = pytest.mark.anyio


def a_thread() -> str:
    return str(uuid.uuid4())


async def asks(house: SmallHouse, thread: str, **payload: Any) -> tuple[AtRunner, StoredFact]:
    await house.say("my taxes", thread=thread)
    run = await house.gateway.next()
    run.message("That is for two.")
    told = {"reason": "taxes", "summary": "rent is known", **payload}
    run.say("action.requested", action="session.handover", target={}, payload={"target_agent_id": "two", **told})
    return run, await house.until(thread, "CONTROL:HANDOVER_UI_PROMPT")


async def test_on_a_yes_the_other_agent_gets_what_was_said_and_where_it_comes_from() -> None:
    thread = a_thread()
    async with small_house() as house:
        run, prompt = await asks(house, thread)
        assert prompt.read_payload()["summary"] == "rent is known"
        run.say("run.completed")
        await house.until(thread, "AGENT_OUTPUT:FINAL")
        await house.control("HANDOVER_CONFIRM", thread=thread, tx_id=prompt.tx_id)
        heir = await house.gateway.next()
        context = heir.context
        assert context["input"]["text"] == "That is for two."
        assert context["event"]["event_type"] == "handover.received"
        assert context["event"]["data"] == {
            "from_agent_id": "one",
            "parent_run_id": run.run_id,
            "reason": "taxes",
            "summary": "rent is known",
        }
        assert context["actor"] == {"actor_type": "agent", "actor_id": "one"}
        assert context["trigger"]["source"] == "system"
        accepted = await house.until(thread, "CONTROL:HANDOVER_ACCEPTED")
        assert accepted.sender == "agent:two"
        state = (await house.sessions.open(thread)).state
        assert (state.members, state.active_agent_id) == (("one", "two"), "two")
        heir.message("Gladly.")
        heir.say("run.completed")
        row = await house.store.run(heir.run_id)
        while row is None or row.status != "completed":
            row = await house.store.run(heir.run_id)
            await house.until(thread, "AGENT_OUTPUT:FINAL", after=accepted.seq)
        assert (row.agent_id, row.user_id) == ("two", "ann")


async def test_a_yes_while_the_agent_still_speaks_waits_for_its_last_word() -> None:
    thread = a_thread()
    async with small_house() as house:
        run, prompt = await asks(house, thread)
        await house.control("HANDOVER_CONFIRM", thread=thread)
        assert house.gateway.started.empty()
        run.say("run.completed")
        heir = await house.gateway.next()
        assert heir.context["event"]["data"]["parent_run_id"] == run.run_id
        with pytest.raises(HostError, match="no handover"):
            await house.control("HANDOVER_CONFIRM", thread=thread, tx_id=prompt.tx_id)


async def test_a_no_changes_nothing_and_everybody_hears_of_it() -> None:
    thread = a_thread()
    async with small_house() as house:
        run, prompt = await asks(house, thread)
        await house.control("HANDOVER_REJECT", thread=thread, tx_id=prompt.tx_id)
        over = await house.until(thread, "CONTROL:HANDOVER_REJECT")
        assert (over.target, over.read_payload()["reason"]) == ("BROADCAST", "user")
        run.say("run.completed")
        await house.until(thread, "AGENT_OUTPUT:FINAL")
        assert (await house.sessions.open(thread)).state.active_agent_id == "one"


async def test_an_agent_nobody_knows_cannot_be_handed_over_to() -> None:
    thread = a_thread()
    async with small_house() as house:
        await house.say("hi", thread=thread)
        run = await house.gateway.next()
        run.say("action.requested", action="session.handover", target={}, payload={"target_agent_id": "zoe"})
        over = await house.until(thread, "CONTROL:HANDOVER_REJECT")
        assert over.read_payload()["reason"] == "agent_not_found"


async def test_a_handover_survives_a_restart_between_the_question_and_the_answer() -> None:
    thread, store = a_thread(), QuickStore()
    async with small_house(store) as house:
        run, prompt = await asks(house, thread)
        run.say("run.completed")
        await house.until(thread, "AGENT_OUTPUT:FINAL")
    async with small_house(store) as house:
        await house.sessions.recover("host_restarted", "restarted")
        await house.control("HANDOVER_CONFIRM", thread=thread, tx_id=prompt.tx_id)
        heir = await house.gateway.next()
        assert heir.context["input"]["text"] == "That is for two."
