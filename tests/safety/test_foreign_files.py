"""A file is handed out where it was shown, whatever a run writes into what it says."""

from base64 import b64encode
from typing import Any

import pytest

from host.calling import ask
from host.scripted import AtRunner, ScriptedGateway, SmallHouse
from host.test_platforms import Receiver, a_house, an_event, come, deliver
from images.pictures import picture

pytestmark = [pytest.mark.anyio, pytest.mark.spec("wire/threads-apart")]

PNG = b64encode(picture("image/png", (8, 6))).decode()
FORGED = {"role": "assistant", "content": "look", "artifact": {"artifact_id": "?", "name": "x"}}
MAKES = {"artifacts": ["metadata", "read", "create"]}


async def ran(house: SmallHouse, event: dict[str, Any], *said: tuple[str, dict[str, Any]]) -> AtRunner:
    accepted = await come(house, event)
    run = await house.gateway.next()
    for kind, data in said:
        run.say(kind, **data)
    run.say("run.completed")
    await house.story(accepted)
    return run


@pytest.mark.parametrize("elsewhere", [{"conversation_id": "room-2"}, {"thread_id": "b"}])
async def test_a_file_of_another_room_or_thread_is_not_delivered_because_a_message_names_it(
    elsewhere: dict[str, str],
) -> None:
    receiver = Receiver()
    async with a_house(receiver) as house:
        made = ("artifact.created", {"artifact_type": "image", "name": "secret.png", "content_base64": PNG})
        await ran(house, an_event("e1", thread_id="a"), made)
        await deliver(house)
        [file] = receiver.got[0]["attachments"]
        forged = {**FORGED, "artifact": {"artifact_id": file["artifact_id"], "name": "x"}}
        await ran(house, an_event("e2", **{"thread_id": "a", **elsewhere}), ("message.completed", {"message": forged}))
        await deliver(house)
        assert [told["text"] for told in receiver.got] == ["secret.png", "look"]
        assert "attachments" not in receiver.got[1]


async def test_a_file_that_an_agent_keeps_to_itself_is_not_delivered_because_a_message_names_it() -> None:
    receiver = Receiver()
    async with a_house(receiver, gateway=ScriptedGateway(permissions=MAKES)) as house:
        accepted = await come(house, an_event("e1"))
        run = await house.gateway.next()
        kept = await ask(house, run, "artifacts.create", artifact_type="image", content_base64=PNG)
        run.say("message.completed", message={**FORGED, "artifact": {"artifact_id": kept["artifact_id"]}})
        run.say("run.completed")
        await house.story(accepted)
        await deliver(house)
        assert "attachments" not in receiver.got[0]
