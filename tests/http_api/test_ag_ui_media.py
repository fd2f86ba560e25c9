"""Files inside messages at the AG-UI door: kept, referred to by id, shown again; nothing is ever fetched."""

from base64 import b64encode
from typing import Any

import pytest

from http_api.doors import Doors, assert_problem, open_doors
from http_api.ordering import events_in
from http_api.test_ag_ui_history import AG_UI, Chat, user
from http_api.test_attachments import at, of_long_ago, ready
from images.pictures import telling

pytestmark = pytest.mark.anyio
PNG = telling("image/png")
DATA = b64encode(PNG).decode()
INLINE = {"type": "image", "source": {"type": "data", "value": DATA, "mimeType": "image/png"}}


async def sent(doors: Doors, *parts: dict[str, Any]) -> tuple[Any, Chat]:
    chat = Chat(doors)
    chat.messages.append(user("u1") | {"content": [{"type": "text", "text": "look"}, *parts]})
    return await chat.answered(), chat


@pytest.mark.spec("http/ag-ui-media")
@pytest.mark.parametrize(
    "part",
    [
        INLINE,
        {"type": "binary", "mimeType": "image/png", "data": DATA, "filename": "a.png", "id": None},
        {"type": "image", "source": {"type": "url", "value": f"data:image/png;base64,{DATA}"}},
        {"type": "document", "source": {"type": "data", "value": DATA, "mimeType": "application/pdf"}},
    ],
    ids=["1.0", "0.x", "data url", "of another type than it says"],
)
async def test_a_file_inside_a_message_is_kept_and_reaches_the_runner_by_id(part: dict[str, Any]) -> None:
    async with open_doors() as doors:
        run, chat = await sent(doors, part)
        (file,) = run.context["input"]["attachments"]
        assert file["mime_type"] == "image/png"
        row = await doors.house.artifacts.find("default", file["artifact_id"])
        assert row is not None
        assert row.size == file["size"] > 0
        assert (row.conversation_id, row.published) == (run.context["conversation"]["conversation_id"], True)
        (item, _) = await chat.items()
        assert DATA.encode() not in item.content_json
        assert file["artifact_id"].encode() in item.content_json


@pytest.mark.spec("http/ag-ui-media")
async def test_a_signed_url_of_ours_is_the_file_and_is_signed_anew_when_it_is_shown_again() -> None:
    async with open_doors() as doors:
        up = (await doors.client.post("/api/v1/agent/attachments", files={"file": ("a.png", PNG, "image/png")})).json()
        ours = {"type": "image", "source": {"type": "url", "value": up["url"]}}
        run, _ = await sent(doors, ours)
        assert run.context["input"]["attachments"][0]["artifact_id"] == up["attachmentId"]
        for version, kind in (("1.0", "image"), (None, "binary")):
            body = {"threadId": "main", "protocolVersion": version}
            seen = events_in((await doors.client.post(f"{AG_UI}/connect", json=body)).content)
            part = seen[1]["messages"][0]["content"][1]
            assert part["type"] == kind
            address = part["source"]["value"] if kind == "image" else part["url"]
            assert up["attachmentId"] in address
            assert (await doors.client.get(address)).status_code == 200


@pytest.mark.spec("http/ag-ui-media")
@pytest.mark.parametrize(
    "part",
    [
        {"type": "image", "source": {"type": "url", "value": "http://169.254.169.254/latest"}},
        {"type": "image", "source": {"type": "url", "value": "file:///etc/passwd"}},
        {"type": "image", "source": {"type": "file", "value": "file-123", "provider": "somebody"}},
        {"type": "image", "source": {"type": "data", "value": "not base64!", "mimeType": "image/png"}},
        {"type": "binary", "mimeType": "image/png"},
        {"type": "binary", "mimeType": "image/png", "id": "art_of_somebody_else"},
        {"type": "hologram", "depth": 3},
    ],
)
async def test_a_part_that_cannot_be_used_is_passed_over_and_the_run_goes_on(part: dict[str, Any]) -> None:
    async with open_doors() as doors:
        run, _ = await sent(doors, part)
        assert run.context["input"]["text"] == "look"
        assert run.context["input"]["attachments"] == []


async def test_a_file_of_ones_own_is_named_by_id_and_nobody_elses_is() -> None:
    async with open_doors() as doors:
        run, _ = await sent(doors, INLINE)
        known = run.context["input"]["attachments"][0]["artifact_id"]
        again = user("u1") | {"content": [{"type": "binary", "mimeType": "image/png", "id": known}]}
        for who, files in (("dev", 1), ("bob", 0)):
            chat = Chat(doors, f"thread of {who}")
            chat.messages = [again]
            if who != "dev":
                doors.client.headers.update(await doors.key_for(who))
            run = await chat.answered()
            assert len(run.context["input"]["attachments"]) == files


@pytest.mark.parametrize(
    ("part", "detail"),
    [
        ({"type": "image"}, "messages[0].content[0].source must be an object"),
        ({"type": "image", "source": {"type": "url"}}, "messages[0].content[0].source.value must be a string"),
        ({"type": "image", "source": {"type": "data", "value": "AA=="}}, "messages[0].content[0].source.mimeType must"),
        ({"type": "binary", "mimeType": 5}, "messages[0].content[0].mimeType must be a string"),
    ],
)
async def test_a_known_part_with_wrong_values_is_refused(part: dict[str, Any], detail: str) -> None:
    async with open_doors() as doors:
        body = {"threadId": "t", "runId": "r", "messages": [user("u1") | {"content": [part]}]}
        assert_problem(await doors.client.post(AG_UI, json=body), 422, "invalid_argument", detail)


@pytest.mark.spec("http/ag-ui-media")
async def test_the_retry_of_an_accepted_run_answers_the_same_although_its_pictures_address_has_expired() -> None:
    async with open_doors() as doors:
        found = await ready(doors)
        picture = {"type": "image", "source": {"type": "url", "value": found["url"]}}
        chat = Chat(doors)
        chat.messages.append(user("u1") | {"content": [{"type": "text", "text": "look"}, picture]})
        body = chat.body(messages=list(chat.messages))
        chat.body = lambda **_: body  # type: ignore[method-assign]
        run = await chat.answered("a map")
        first = chat.events
        picture["source"] = {"type": "url", "value": of_long_ago(found)}
        chat.take((await doors.client.post(AG_UI, json=body)).content)
        assert [event for event in chat.events if event["type"] != "RUN_STARTED"] == [
            event for event in first if event["type"] != "RUN_STARTED"
        ]
        assert len(run.context["input"]["attachments"]) == 1


@pytest.mark.spec("http/ag-ui-media")
async def test_a_picture_at_another_host_is_passed_over_whatever_signed_it() -> None:
    async with open_doors() as doors:
        url = (await ready(doors))["url"]
        parts = [
            {"type": "image", "source": {"type": "url", "value": one}}
            for one in (at(url, netloc="evil.example"), at(url, scheme="https"), url)
        ]
        run, _ = await sent(doors, *parts)
        assert len(run.context["input"]["attachments"]) == 1
