"""Files that come with a platform's message reach the runner; files that a run makes reach the platform."""

from base64 import b64encode
from typing import Any

import pytest

from host.scripted import HERE
from host.test_platforms import CHAT_USER, Receiver, a_house, an_event, come, deliver
from images.pictures import picture
from paddock.host.people.principals import Principal
from paddock.ports.platforms import Posted
from paddock.rules.conversations.attachments import taken_apart
from paddock.rules.errors import ErrorCode, HostError

pytestmark = pytest.mark.anyio

PNG = picture("image/png", (8, 6))
INLINE = {"content": b64encode(PNG).decode(), "name": "cat.png"}


def with_files(*files: dict[str, Any], event_id: str = "e1", **changes: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"input": {"text": "look", "attachments": list(files)}, **changes}
    return an_event(event_id, **given)


@pytest.mark.spec("http/events-files")
async def test_a_file_that_comes_inline_is_kept_and_reaches_the_runner_as_an_attachment() -> None:
    async with a_house(Receiver()) as house:
        accepted = await come(house, with_files(INLINE))
        run = await house.gateway.next()
        [file] = run.context["input"]["attachments"]
        assert (file["mime_type"], file["name"], run.context["input"]["text"]) == ("image/png", "cat.png", "look")
        row = await house.store.artifact(file["artifact_id"])
        assert row is not None
        assert (row.conversation_id, row.user_id, row.source) == (accepted.session_id, "chat", "platform")
        [item] = await house.store.transcript(accepted.session_id)
        assert b"cat.png" in item.content_json
        assert INLINE["content"].encode() not in item.content_json
        assert (await come(house, with_files(INLINE))).run_id == accepted.run_id
        kept = [one for one in await house.store.audit(limit=100) if one.action == "attachment.upload"]
        assert len(kept) == 1
        run.say("run.completed")


@pytest.mark.spec("http/events-files")
@pytest.mark.parametrize("by", ["artifact_id", "url"])
async def test_a_file_that_was_uploaded_before_comes_by_its_id_or_its_signed_address(by: str) -> None:
    async with a_house(Receiver()) as house:
        row = await house.attachments.upload(CHAT_USER, PNG, "cat.png")
        url = house.attachments.signed_url(row.artifact_id, workspace_id="default", user_id="chat")
        await come(house, with_files({by: row.artifact_id if by == "artifact_id" else url}))
        run = await house.gateway.next()
        assert [file["artifact_id"] for file in run.context["input"]["attachments"]] == [row.artifact_id]
        run.say("run.completed")


@pytest.mark.spec("http/events-files")
@pytest.mark.parametrize(
    ("file", "code", "says"),
    [
        ({"content": "not base64"}, ErrorCode.INVALID_ARGUMENT, "input.attachments.0: data is not base64"),
        ({"content": "aGVsbG8="}, ErrorCode.INVALID_ARGUMENT, "input.attachments.0: an attachment must be one of"),
        (
            {"url": "https://elsewhere.example/x.png"},
            ErrorCode.INVALID_ARGUMENT,
            "input.attachments.0: its url is none",
        ),
        ({"artifact_id": "a" * 32}, ErrorCode.INVALID_ARGUMENT, "input.attachments.0: there is no such attachment"),
        ({}, ErrorCode.INVALID_ARGUMENT, "input.attachments.0: give one of artifact_id, url"),
        ({**INLINE, "url": "/x"}, ErrorCode.INVALID_ARGUMENT, "input.attachments.0: give one of artifact_id, url"),
    ],
)
async def test_a_file_that_cannot_be_used_refuses_the_event_with_its_place_and_nothing_runs(
    file: dict[str, Any], code: ErrorCode, says: str
) -> None:
    async with a_house(Receiver()) as house:
        with pytest.raises(HostError) as refused:
            await come(house, with_files(file))
        assert (refused.value.code, refused.value.message[: len(says)]) == (code, says)
        assert house.gateway.started.empty()
        assert await house.store.platform_event("chat", "e1") is None


@pytest.mark.spec("http/events-files")
async def test_there_are_as_many_as_at_the_native_door_and_only_messages_bring_them() -> None:
    async with a_house(Receiver()) as house:
        for event in (with_files(*[INLINE] * 4), with_files(INLINE, event_type="group.member_joined")):
            with pytest.raises(HostError) as refused:
                await come(house, event)
            assert refused.value.code is ErrorCode.INVALID_ARGUMENT
            assert "attachments" in refused.value.message or "carries files" in refused.value.message


async def test_somebody_elses_file_looks_like_none() -> None:
    async with a_house(Receiver()) as house:
        row = await house.attachments.upload(Principal("default", "ann"), PNG, "cat.png")
        url = house.attachments.signed_url(row.artifact_id, workspace_id="default", user_id="ann")
        for file in ({"artifact_id": row.artifact_id}, {"url": url}):
            with pytest.raises(HostError):
                await come(house, with_files(file))


@pytest.mark.spec("http/deliveries-files")
async def test_a_file_that_a_run_made_is_delivered_with_an_address_that_is_signed_anew_each_time() -> None:
    now = [1_000_000.0]
    receiver = Receiver(answers=[Posted(500)])
    async with a_house(receiver, clock=lambda: now[0]) as house:
        accepted = await come(house, an_event())
        run = await house.gateway.next()
        run.say("artifact.created", artifact_type="image", name="plot.png", content_base64=INLINE["content"])
        run.say("run.completed")
        await house.story(accepted)
        await deliver(house)
        now[0] += 60
        await deliver(house)
        first, second = receiver.got
        assert first["webhook-id"] == second["webhook-id"]
        [file] = second["attachments"]
        assert (file["mime_type"], file["name"], second["text"]) == ("image/png", "plot.png", "plot.png")
        assert file["url"].startswith(f"{HERE}/api/v1/agent/attachments/")
        assert file["url"] != first["attachments"][0]["url"]
        row = await house.attachments.opened(taken_apart(file["url"]))
        assert b"".join([piece async for piece in house.attachments.pieces(row)]) == PNG
        now[0] += 901
        with pytest.raises(HostError):
            await house.attachments.opened(taken_apart(file["url"]))
