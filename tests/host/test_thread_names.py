"""Ids made from names: always the same for their owner, for no stranger to take, found again after every change."""

from uuid import UUID, uuid5

import pytest

from host.calling import a_gateway
from host.scripted import ANN, BOB, NAMES_KEY, SmallHouse, small_house
from keeping.conversations import a_turn
from paddock.host.conversations.inbox import ThreadNames
from paddock.host.people.principals import Principal
from paddock.rules.agents.specs import PlatformSpec
from paddock.rules.rows.rows import ThreadNameRow

pytestmark = pytest.mark.anyio

MALLORY = Principal("elsewhere", "mallory", "admin")
CHAT = PlatformSpec(secret="a secret of the chat platform", webhook="http://127.0.0.1:9/hook")
NAMES_BEFORE = UUID("6f1de2a1-7c34-5f0b-9a55-3d8e6b7f0c21")
ROOMS_BEFORE = UUID("2c1a7d0e-58b5-5b0e-8a3c-9f4f1d6e7b52")


def old_id(who: Principal, name: str) -> str:
    """The id that earlier versions gave a name, and that everybody could work out."""
    return str(uuid5(NAMES_BEFORE, f"{who.workspace_id}\0{who.user_id}\0{name}"))


def old_room(room: str) -> str:
    return str(uuid5(ROOMS_BEFORE, f"default\0chat\0conversation:{room}"))


async def taken_by(house: SmallHouse, stranger: Principal, thread: str) -> None:
    accepted = await house.say("mine now", thread=thread, who=stranger)
    (await house.gateway.next()).say("run.completed")
    await house.story(accepted)


async def came(house: SmallHouse, room: str, event_id: str) -> str:
    """A message of a platform's room; the thread it went into."""
    platform = house.platforms.find("chat")
    assert platform is not None
    event = {"event_id": event_id, "event_type": "message.received", "conversation_id": room, "input": {"text": "hi"}}
    accepted = await house.ingress.accept(platform, event)
    (await house.gateway.next()).say("run.completed")
    await house.story(accepted)
    return accepted.session_id


@pytest.mark.parametrize("stranger", [BOB, MALLORY])
async def test_nobody_takes_the_id_of_a_name_before_its_owner_does(stranger: Principal) -> None:
    async with small_house(gateway=a_gateway()) as house:
        await taken_by(house, stranger, old_id(ANN, "my first chat"))
        thread = await ThreadNames(house.store, NAMES_KEY).find(ANN, "my first chat")
        assert thread != old_id(ANN, "my first chat")
        await a_turn(house, "hello", thread=thread)
        kept = await house.store.session(thread)
        assert kept is not None
        assert kept.user_id == ANN.user_id


@pytest.mark.parametrize("stranger", [ANN, MALLORY])
async def test_nobody_takes_the_id_of_a_room_before_its_platform_does(stranger: Principal) -> None:
    async with small_house(gateway=a_gateway(), platforms={"chat": CHAT}) as house:
        await taken_by(house, stranger, old_room("room-7"))
        thread = await came(house, "room-7", "e1")
        assert thread != old_room("room-7")
        kept = await house.store.session(thread)
        assert kept is not None
        assert kept.user_id == "chat"
        assert await came(house, "room-7", "e2") == thread


async def test_a_name_and_a_room_go_on_in_the_thread_that_an_earlier_version_gave_them() -> None:
    async with small_house(gateway=a_gateway(), platforms={"chat": CHAT}) as house:
        platform = house.platforms.find("chat")
        assert platform is not None
        await taken_by(house, ANN, old_id(ANN, "my first chat"))
        await taken_by(house, platform.principal, old_room("room-7"))
        assert await ThreadNames(house.store, NAMES_KEY).find(ANN, "my first chat") == old_id(ANN, "my first chat")
        assert await came(house, "room-7", "e1") == old_room("room-7")


async def test_after_a_rotation_of_the_secret_names_and_rooms_lead_where_they_led() -> None:
    async with small_house(gateway=a_gateway(), platforms={"chat": CHAT}) as house:
        before = await ThreadNames(house.store, NAMES_KEY).find(ANN, "my first chat")
        await a_turn(house, "hello", thread=before)
        await house.store.write([ThreadNameRow(ANN.workspace_id, ANN.user_id, "my first chat", before)])
        room = await came(house, "room-7", "e1")
        rotated = ThreadNames(house.store, b"another key")
        assert await rotated.find(ANN, "my first chat") == before
        assert await rotated.find_room(Principal("default", "chat"), "chat\0conversation:room-7") == room
        assert await rotated.find(ANN, "another") != await ThreadNames(house.store, NAMES_KEY).find(ANN, "another")
