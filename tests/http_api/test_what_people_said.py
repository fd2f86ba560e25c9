"""Streams tell what people said: in every format, with their pictures, and under the names they gave."""

import asyncio
import json
import uuid
from typing import Any

import httpx
import pytest

from http_api.doors import Doors, a_body, open_doors
from http_api.facts import events_of
from http_api.frames import split
from http_api.ordering import assert_official
from images.pictures import telling

pytestmark = pytest.mark.anyio
SESSIONS = "/api/v1/agent/sessions"
AG_UI = "/api/v1/agent/ag-ui"


async def heard(doors: Doors, thread: str, form: str, count: int) -> list[dict[str, Any]]:
    """The first frames of a conversation from its beginning."""
    frames: list[dict[str, Any]] = []
    path = f"{SESSIONS}/{thread}/events?format={form}&after=0"
    async with asyncio.timeout(30), doors.client.stream("GET", path) as answer:
        async for line in answer.aiter_lines():
            if line.startswith("data: "):
                frames.append(json.loads(line[6:]))
                if len(frames) == count:
                    break
    return frames


async def said_at(doors: Doors, door: str, thread: str, text: str) -> None:
    if door == "native":
        asking = asyncio.create_task(doors.post(a_body(thread, text=text)))
    elif door == "ag-ui":
        messages = [{"id": "u1", "role": "user", "content": text}]
        body = {"threadId": thread, "runId": "r1", "protocolVersion": "1.0", "messages": messages}
        asking = asyncio.create_task(doors.client.post(AG_UI, json=body))
    else:
        asking = asyncio.create_task(doors.client.post(f"{SESSIONS}/{thread}/messages", json={"payload": text}))
    await doors.answered(await doors.gateway.next(), "fine")
    assert (await asking).status_code < 300


@pytest.mark.spec("http/sessions-events-input")
@pytest.mark.parametrize("door", ["native", "ag-ui", "messages"])
async def test_the_stream_of_a_conversation_tells_what_the_user_said_as_messages(door: str) -> None:
    async with open_doors() as doors:
        thread = str(uuid.uuid4())
        await said_at(doors, door, thread, "how are you?")
        frames = await heard(doors, thread, "messages", 3)
        [said] = [frame for frame in frames if frame["event"] == "USER_INPUT"]
        assert (said["sender"], said["target"], said["payload"]["text"]) == ("user:dev", "SYSTEM", "how are you?")
        assert said["payload"].keys() == {"text", "message"}
        assert said["turn_id"]


@pytest.mark.spec("http/sessions-events-input")
@pytest.mark.parametrize("door", ["native", "ag-ui", "messages"])
async def test_the_stream_of_a_conversation_tells_what_the_user_said_in_ag_ui(door: str) -> None:
    async with open_doors() as doors:
        thread = str(uuid.uuid4())
        await said_at(doors, door, thread, "how are you?")
        frames = await heard(doors, thread, "ag-ui", 3)
        [began] = [frame for frame in frames if frame["type"] == "RUN_STARTED"]
        assert [message["content"] for message in began["input"]["messages"]] == ["how are you?"]
        assert_official(began)


@pytest.mark.spec("http/input-pictures")
async def test_the_input_is_replayed_with_its_pictures() -> None:
    async with open_doors() as doors:
        file = {"file": ("map.png", telling("image/png"), "image/png")}
        uploaded = (await doors.client.post("/api/v1/agent/attachments", files=file)).json()
        parts = [
            {"type": "text", "text": "where?"},
            {"type": "binary", "mimeType": "image/png", "url": uploaded["url"]},
        ]
        thread = str(uuid.uuid4())
        body = a_body(thread, messages=[{"id": "m1", "role": "user", "content": parts}])
        task = (await doors.post(body)).json()["taskId"]
        await doors.answered(await doors.gateway.next(), "there")
        streamed = events_of(split((await doors.client.get(f"/api/v1/agent/runs/{task}/events")).content))[0]
        [followed] = [one for one in await heard(doors, thread, "ag-ui", 3) if one["type"] == "RUN_STARTED"]
        [spoken] = [one for one in await heard(doors, thread, "messages", 3) if one["event"] == "USER_INPUT"]
        for began in (streamed, followed):
            assert_official(began)
            text, image = began["input"]["messages"][0]["content"]
            assert text == {"type": "text", "text": "where?"}
            assert (image["type"], image["metadata"]["attachmentId"]) == ("image", uploaded["attachmentId"])
            await assert_read(doors, image["source"]["value"])
        await assert_read(doors, spoken["payload"]["message"]["content"][1]["url"])


async def assert_read(doors: Doors, url: str) -> None:
    read: httpx.Response = await doors.client.get(url)
    assert (read.status_code, read.headers["content-type"]) == (200, "image/png")


@pytest.mark.spec("http/run-names")
async def test_a_run_that_was_handed_over_to_has_a_name() -> None:
    async with open_doors() as doors:
        thread = str(uuid.uuid4())
        await doors.post(a_body(thread))
        run = await doors.gateway.next()
        run.say("action.requested", action="session.handover", target={}, payload={"target_agent_id": "two"})
        await doors.house.until(thread, "CONTROL:HANDOVER_UI_PROMPT")
        run.say("run.completed")
        await doors.ended(run.run_id)
        control = {"subtype": "HANDOVER_CONFIRM"}
        answer = await doors.client.post(f"{SESSIONS}/{thread}/control", json=control)
        heir = await doors.gateway.next()
        assert answer.json()["turnId"] == heir.run_id
        seen = (await doors.client.get(f"/api/v1/agent/runs/{heir.run_id}")).json()
        assert (seen["taskId"], seen["runId"]) == (heir.run_id, heir.run_id)
        listed = (await doors.client.get("/api/v1/agent/runs", params={"threadId": thread})).json()["runs"]
        assert "" not in [one["runId"] for one in listed]


@pytest.mark.spec("http/run-names")
async def test_an_id_in_capital_letters_comes_back_as_it_was_sent() -> None:
    async with open_doors() as doors:
        thread, run = str(uuid.uuid4()).upper(), str(uuid.uuid4()).upper()
        accepted = (await doors.post(a_body(thread, run))).json()
        await doors.answered(await doors.gateway.next(), "fine")
        assert (accepted["threadId"], accepted["runId"]) == (thread, run)
        again = (await doors.post(a_body(thread, run))).json()
        assert again == accepted
        path = f"/api/v1/agent/runs/{run}/events"
        began, *_, ended = events_of(split((await doors.client.get(path, params={"threadId": thread})).content))
        assert (began["threadId"], began["input"]["threadId"], ended["threadId"]) == (thread, thread, thread)
        message = {"id": "u9", "role": "user", "content": "more"}
        body = {"threadId": thread, "runId": "r2", "protocolVersion": "1.0", "messages": [message]}
        asking = asyncio.create_task(doors.client.post(AG_UI, json=body))
        await doors.answered(await doors.gateway.next(), "fine")
        events = [json.loads(frame.partition(b"data: ")[2]) for frame in split((await asking).content)]
        assert {event["threadId"] for event in events if "threadId" in event} == {thread}
        sent = await doors.client.post(f"{SESSIONS}/{thread}/messages", json={"payload": "and more"})
        assert sent.json()["threadId"] == thread
        await doors.answered(await doors.gateway.next(), "fine")
        opened = await doors.client.post(SESSIONS, json={"threadId": thread})
        assert opened.json()["threadId"] == thread
        looked = await doors.client.get(f"{SESSIONS}/{thread}")
        assert looked.json()["threadId"] == thread
