"""What an agent keeps for one person is nobody else's, whatever ids they have and wherever they speak."""

import time
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from host.calling import HERE
from host.scripted import ANN, BOB, AtRunner, SmallHouse, small_house
from host.test_platforms import CHAT, CHAT_USER, Receiver, an_event
from paddock.host.cluster.forwarding import Forwarding
from paddock.host.people.principals import DEV, Principal
from paddock.host.people.taking_over import TakingOver
from paddock.host.streams.open_streams import OpenStreams
from paddock.ports import Store
from paddock.rules.access.permissions import state_key
from paddock.rules.agents.specs import PlatformSpec
from paddock.rules.log.payloads import SCHEDULE, RunEvent

pytestmark = pytest.mark.anyio

AGENTS = """
default_agent: one
agents:
  one:
    runner: "plugin:test/one/default"
    events: [message.received, "group.*", schedule.triggered]
    state_scopes: [conversation, actor, subject, runner]
  two: {runner: "plugin:test/one/default"}
"""
PLATFORMS = ("chat", "talk")
NAMED_ANN = {"actor_id": "ann", "actor_type": "user"}


@asynccontextmanager
async def a_house(store: Store | None = None) -> AsyncGenerator[SmallHouse]:
    """A host with two platforms."""
    platforms = {name: PlatformSpec.model_validate(CHAT) for name in PLATFORMS}
    async with small_house(store, platforms=platforms, webhooks=Receiver(), agents=AGENTS) as house:
        yield house


async def by_api(house: SmallHouse, who: Principal, thread: str | None = None) -> AtRunner:
    await house.say(thread=thread or str(uuid.uuid4()), who=who)
    return await house.gateway.next()


async def on(house: SmallHouse, platform: str, **event: Any) -> AtRunner:
    found = house.platforms.find(platform)
    assert found is not None
    await house.ingress.accept(found, an_event(uuid.uuid4().hex, **event))
    return await house.gateway.next()


async def by_schedule(house: SmallHouse, who: Principal) -> AtRunner:
    event = RunEvent(SCHEDULE, subject={"subject_type": "schedule", "subject_id": f"of {who.user_id}"})
    await house.say(thread=str(uuid.uuid4()), who=who, event=event, source="scheduler", agent_id="one")
    return await house.gateway.next()


async def handed_over(house: SmallHouse, run: AtRunner, who: Principal) -> AtRunner:
    run.say("action.requested", action="session.handover", payload={"target_agent_id": "two", "reason": "x"})
    run.say("run.completed")
    thread = run.context["conversation"]["conversation_id"]
    prompt = await house.until(thread, "CONTROL:HANDOVER_UI_PROMPT")
    await house.control("HANDOVER_CONFIRM", thread=thread, who=who, tx_id=prompt.tx_id)
    return await house.gateway.next()


async def keep(house: SmallHouse, run: AtRunner, value: str, scope: str = "actor") -> None:
    given = {"run_id": run.run_id, "scope": scope, "key": "told", "value": value}
    await house.calls(HERE, "state.set", given, 100)


async def found(house: SmallHouse, run: AtRunner, scope: str = "actor") -> Any:
    told = await house.calls(HERE, "state.get", {"run_id": run.run_id, "scope": scope, "key": "told"}, 100)
    assert run.context["state"].get(scope, {}).get("told") == told.get("value")
    return told.get("value")


async def ended(house: SmallHouse, run: AtRunner) -> None:
    run.say("run.completed")
    row = await house.store.run(run.run_id)
    assert row is not None
    await house.story(row)


Speaks = Callable[[SmallHouse], Awaitable[AtRunner]]
WHO: Mapping[str, Speaks] = {
    "ann of the workspace": lambda house: by_api(house, ANN),
    "bob of the workspace": lambda house: by_api(house, BOB),
    "the user to whom a platform's conversations belong": lambda house: by_api(house, CHAT_USER),
    "ann on one platform": lambda house: on(house, "chat", actor=NAMED_ANN),
    "ann on another": lambda house: on(house, "talk", actor=NAMED_ANN),
    "chat on a platform": lambda house: on(house, "chat", actor={"actor_id": "chat"}),
    "a bot that says it is a schedule": lambda house: on(
        house, "chat", actor={"actor_type": "system", "actor_id": "scheduler"}
    ),
    "a bot that says it is an agent": lambda house: on(house, "chat", actor={"actor_type": "agent", "actor_id": "one"}),
    "somebody in a room": lambda house: on(house, "chat", actor=None),
    "somebody in a thread of it": lambda house: on(house, "chat", actor=None, thread_id="topic"),
    "somebody in another room": lambda house: on(house, "chat", actor=None, conversation_id="other"),
    "somebody on another platform": lambda house: on(house, "talk", actor=None),
    "a group": lambda house: on(house, "chat", actor=None, event_type="group.member_joined", conversation_id="joining"),
    "a group on another platform": lambda house: on(
        house, "talk", actor=None, event_type="group.member_joined", conversation_id="joining"
    ),
    "ann's schedule": lambda house: by_schedule(house, ANN),
    "bob's schedule": lambda house: by_schedule(house, BOB),
}


@pytest.mark.spec("wire/state-of-an-actor")
async def test_nobody_reads_what_is_kept_for_somebody_else_of_the_same_id() -> None:
    async with a_house() as house:
        for name, speaks in WHO.items():
            run = await speaks(house)
            assert (name, await found(house, run)) == (name, None)
            await keep(house, run, name)
            await ended(house, run)
        for name, speaks in WHO.items():
            run = await speaks(house)
            assert await found(house, run) == name
            await ended(house, run)


@pytest.mark.spec("wire/state-of-an-actor")
async def test_what_an_agent_keeps_when_it_takes_over_is_of_the_person_it_talks_to() -> None:
    async with a_house() as house:
        for who in (ANN, BOB):
            run = await handed_over(house, await by_api(house, who), who)
            assert await found(house, run) is None
            await keep(house, run, who.user_id)
            await ended(house, run)
        for actor, room in (("u-1", "first"), ("u-2", "second")):
            asked = await on(house, "chat", actor={"actor_id": actor}, conversation_id=room)
            run = await handed_over(house, asked, CHAT_USER)
            assert await found(house, run) is None
            await keep(house, run, actor)
            await ended(house, run)
        again = await handed_over(house, await by_api(house, ANN), ANN)
        assert await found(house, again) == "ann"
        again.say("run.completed")


@pytest.mark.spec("wire/state-of-an-actor")
async def test_what_is_kept_about_a_subject_of_one_platform_is_not_about_one_of_another() -> None:
    subject = {"subject_type": "group", "subject_id": "7"}
    async with a_house() as house:
        run = await on(house, "chat", event_type="group.renamed", subject=subject)
        await keep(house, run, "of chat", "subject")
        await ended(house, run)
        other = await on(house, "talk", event_type="group.renamed", subject=subject)
        assert await found(house, other, "subject") is None
        await ended(house, other)
        again = await on(house, "chat", event_type="group.renamed", subject=subject)
        assert await found(house, again, "subject") == "of chat"
        again.say("run.completed")


async def test_what_was_kept_for_nobody_in_particular_goes_with_the_conversation() -> None:
    async with a_house() as house:
        keys: set[str] = set()
        for thread_id in (None, "topic"):
            run = await on(house, "chat", actor=None, thread_id=thread_id)
            live = house.runs.live.find(run.run_id)
            assert live is not None
            for scope in ("actor", "conversation"):
                await keep(house, run, "a secret", scope)
                keys.add(state_key(scope, live.grant) or "")
            await ended(house, run)
        assert [await house.store.state(key, "told") for key in keys] == [b'"a secret"'] * 4
        await house.keeping.delete_thread(CHAT_USER, run.context["conversation"]["conversation_id"])
        assert [await house.store.state(key, "told") for key in keys] == [None] * 4


async def test_what_dev_kept_goes_to_the_user_who_takes_over() -> None:
    async with a_house() as house:
        first = await by_schedule(house, DEV)
        await keep(house, first, "at night")
        await ended(house, first)
        second = await by_api(house, DEV)
        await keep(house, second, "by day")
        await ended(house, second)
        third = await handed_over(house, await by_api(house, DEV), DEV)
        await keep(house, third, "in between")
        await ended(house, third)
        taking_over = TakingOver(
            house.store, house.sessions, forwarding=Forwarding(), streams=OpenStreams(house.store), clock=time.time
        )
        assert (await taking_over.take_over(replace(DEV, user_id="root"), "ann")).left == 0
        assert await found(house, await by_schedule(house, ANN)) == "at night"
        assert await found(house, await by_api(house, ANN)) == "by day"
        heir = await handed_over(house, await by_api(house, ANN), ANN)
        assert await found(house, heir) == "in between"
        heir.say("run.completed")
