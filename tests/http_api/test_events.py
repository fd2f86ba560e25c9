"""`POST /api/v1/events`: signed or nothing, fresh, once; and the list of what could not be delivered."""

import json
import time
from base64 import b64encode
from functools import partial
from typing import Any

import anyio
import httpx
import pytest

from http_api.doors import Doors, assert_problem, open_doors
from http_api.test_openapi import check, described
from images.pictures import picture
from paddock.ports.platforms import Posted
from paddock.rules.access.signatures import webhook_headers, webhook_key
from paddock.rules.agents.specs import PlatformSpec
from paddock.rules.run.input import MAX_BODY_BYTES
from paddock_sdk.client import File, NotSignedError, Platform, RefusedError

pytestmark = pytest.mark.anyio

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
CHAT = PlatformSpec(secret=SECRET, webhook="http://127.0.0.1:9/hook")
EVENT = {"event_id": "e1", "event_type": "message.received", "conversation_id": "r", "input": {"text": "hello"}}


class Refusing:
    async def post(self, *_: Any, **__: Any) -> Posted:
        return Posted(410)

    async def close(self) -> None:
        pass


async def send(doors: Doors, body: bytes, *, at: float | None = None, **changes: str) -> httpx.Response:
    headers = {**webhook_headers(webhook_key(SECRET), "m1", time.time() if at is None else at, body), **changes}
    return await doors.client.post("/api/v1/events?platform=chat", content=body, headers=headers)


def encoded(**changes: Any) -> bytes:
    return json.dumps(EVENT | changes).encode()


def test_the_published_example_of_the_convention_is_signed_as_it_says() -> None:
    body = b'{"test": 2432232314}'
    signed = webhook_headers(webhook_key(SECRET), "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)
    assert signed["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.spec("http/events")
async def test_a_signed_event_is_accepted_and_the_same_again_is_the_same() -> None:
    async with open_doors(platforms={"chat": CHAT}) as doors:
        first = await send(doors, encoded())
        assert first.status_code == 202, first.text
        check(described("/api/v1/events", "POST", 202), first.json())
        again = await send(doors, encoded())
        assert again.json() == first.json()
        await doors.answered(await doors.gateway.next(), "hi")
        assert doors.gateway.started.empty()
        other = await send(doors, encoded(input={"text": "other"}))
        assert_problem(other, 409, "conflict", "event 'e1' was accepted already with another body")


@pytest.mark.spec("http/events-signed")
@pytest.mark.parametrize(
    "changes",
    [
        {"webhook-signature": "v1,AAAA"},
        {"webhook-signature": ""},
        {"webhook-id": "another"},
        {"webhook-timestamp": "1"},
        {"webhook-timestamp": "soon"},
    ],
)
async def test_what_is_not_signed_is_refused_like_an_unknown_platform(changes: dict[str, Any]) -> None:
    async with open_doors(platforms={"chat": CHAT}) as doors:
        refused = await send(doors, encoded(), **changes)
        assert_problem(refused, 401, "unauthenticated", "this event is not signed by a platform that is known here")
        unknown = await doors.client.post("/api/v1/events?platform=other", content=encoded())
        assert unknown.text == refused.text
        await doors.house.audit.flush()
        notes = await doors.house.store.audit(limit=2)
        assert [note.action for note in notes] == ["events.accept"] * 2


@pytest.mark.spec("http/events-signed")
async def test_an_old_event_is_a_replay_and_a_key_does_not_help() -> None:
    async with open_doors(platforms={"chat": CHAT}) as doors:
        for off in (-301, 400):  # a slow machine brings what is ahead nearer
            refused = await send(doors, encoded(), at=time.time() + off)
            assert_problem(refused, 401, "unauthenticated", "webhook-timestamp is more than 300 seconds off")
        assert (await send(doors, encoded(), at=time.time() - 290)).status_code == 202
        admin = await doors.key_for("root", role="admin")
        assert (await doors.client.post("/api/v1/events", content=encoded(), headers=admin)).status_code == 401
        await doors.answered(await doors.gateway.next(), "x")


@pytest.mark.spec("http/events")
@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"nonsense", "the event is not valid JSON"),
        (b"[]", "the event must be a JSON object"),
        (encoded(event_type="Message"), "event_type: "),
        (encoded(event_type="handover.received"), "event_type: handover.received is an event that only"),
        (
            encoded(event_type="conversation.continued"),
            "event_type: conversation.continued is an event that only",
        ),
        (encoded(event_type="run.completed"), "event_type: run.completed is an event that only"),
        (encoded(event_id=""), "event_id: "),
        (encoded(actor={}), "actor.actor_id: "),
        (encoded(input={"text": "x" * 10_001}), "input.text: "),
        (encoded(event_time="2026-03-15T10:00:00"), "event_time: send a moment with its offset, such as 2026"),
        (encoded(event_time="yesterday"), "event_time: send a moment"),
        (encoded(event_time=-1), "event_time: send a moment"),
    ],
)
async def test_an_event_that_makes_no_sense_is_refused_in_words(body: bytes, says: str) -> None:
    async with open_doors(platforms={"chat": CHAT}) as doors:
        assert_problem(await send(doors, body), 422, "invalid_argument", says)


@pytest.mark.spec("http/events-files")
async def test_words_have_their_old_limit_and_files_one_of_their_own() -> None:
    photo = picture("image/png", (700, 700), compress_level=0)
    async with open_doors(platforms={"chat": CHAT}) as doors:
        body = encoded(input={"text": "look", "attachments": [{"content": b64encode(photo).decode()}]})
        assert len(body) > 4 * MAX_BODY_BYTES
        accepted = await send(doors, body)
        assert accepted.status_code == 202, accepted.text
        run = await doors.gateway.next()
        assert run.context["input"]["attachments"][0]["mime_type"] == "image/png"
        await doors.answered(run, "a picture")
        wordy = await send(doors, encoded(event_id="e2", data={"x": "y" * MAX_BODY_BYTES}))
        assert_problem(wordy, 413, "payload_too_large", "an event has at most 262144 bytes besides its files")
        huge = await send(doors, b" " * (8 * 1024 * 1024 + 1))
        assert_problem(huge, 413, "payload_too_large", "an event has at most 8388608 bytes")
        unknown = await doors.client.post("/api/v1/events?platform=other", content=body)
        assert_problem(unknown, 401, "unauthenticated", "this event is not signed by a platform that is known here")


async def test_the_adapter_of_the_sdk_sends_files_takes_choices_and_reads_what_is_delivered() -> None:
    told: list[dict[str, Any]] = []

    class Hook:
        async def post(self, _url: str, body: bytes, headers: Any, **_: Any) -> Posted:
            told.append(chat.delivery(headers, body))
            return Posted(200)

        async def close(self) -> None:
            pass

    spec = CHAT.model_copy(update={"interactions": True})
    async with open_doors(platforms={"chat": spec}, webhooks=Hook(), clock=time.time) as doors:
        chat = Platform(doors.url, "chat", SECRET)
        file = File(picture(), name="cat.png")
        say = partial(chat.message, "look", conversation_id="r", actor_id="ann", event_id="m1", files=[file])
        accepted = await anyio.to_thread.run_sync(say)
        assert await anyio.to_thread.run_sync(say) == accepted
        run = await doors.gateway.next()
        assert run.context["input"]["attachments"][0]["name"] == "cat.png"
        run.say("run.completed", interrupts=[{"id": "q1", "message": "sure?"}])
        await doors.ended(run.run_id)
        await doors.house.deliveries.send_due()
        assert told[-1]["interactions"][0]["interaction_id"] == "q1"
        await anyio.to_thread.run_sync(partial(chat.answer, "approve", conversation_id="r", actor_id="ann"))
        run = await doors.gateway.next()
        assert run.context["adapter"]["extra"]["params"]["resume"][0]["payload"] == {"approved": True}
        await doors.answered(run, "done")
        with pytest.raises(RefusedError, match="no question is open"):
            await anyio.to_thread.run_sync(partial(chat.answer, "deny", conversation_id="r", actor_id="ann"))
    for headers in ({}, webhook_headers(webhook_key("another secret of ours"), "m", time.time(), b"{}")):
        with pytest.raises(NotSignedError):
            chat.delivery(headers, b"{}")


@pytest.mark.spec("http/deliveries")
async def test_what_was_given_up_is_listed_for_administrators_and_delivered_again() -> None:
    async with open_doors(platforms={"chat": CHAT}, webhooks=Refusing()) as doors:
        await send(doors, encoded())
        await doors.answered(await doors.gateway.next(), "hi")
        await doors.house.deliveries.send_due()
        answer = await doors.client.get("/api/v1/deliveries?status=dead&limit=5")
        check(described("/api/v1/deliveries", "GET", 200), answer.json())
        [dead] = answer.json()["deliveries"]
        assert (dead["status"], dead["type"], dead["detail"]) == ("dead", "message.completed", "answered 410")
        assert "hi" not in answer.text
        again = await doors.client.post(f"/api/v1/deliveries/{dead['deliveryId']}/redeliver")
        assert (again.status_code, again.json()["status"]) == (202, "pending")
        twice = await doors.client.post(f"/api/v1/deliveries/{dead['deliveryId']}/redeliver")
        assert_problem(twice, 409, "conflict", "only what was given up can be delivered again")
        for wrong in ("status=lost", "limit=0", "limit=x"):
            assert (await doors.client.get(f"/api/v1/deliveries?{wrong}")).status_code == 422
        bob = await doors.key_for("bob")
        assert (await doors.client.get("/api/v1/deliveries", headers=bob)).status_code == 403
        other = await doors.key_for("root", "other", "admin")
        path = f"/api/v1/deliveries/{dead['deliveryId']}/redeliver"
        assert (await doors.client.post(path, headers=other)).status_code == 404
