"""Files for messages: uploaded, judged by their content, read under signed addresses, and seen by the agent's run."""

import asyncio
import hashlib
import json
import uuid
from base64 import b64decode
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from host.calling import ask
from host.scripted import AtRunner
from http_api.doors import KEYS, Doors, a_body, assert_problem, open_doors
from images.pictures import SECRET, picture, telling
from loopback import NO_TLS
from paddock.rules.access.artifacts import NewArtifact
from paddock.rules.access.signatures import SigningKeys
from paddock.rules.conversations.attachments import AttachmentLimits, Owner, read_address
from paddock.rules.values import replace

pytestmark = pytest.mark.anyio
PATH = "/api/v1/agent/attachments"
PDF = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<<>>\nendobj\n"


async def upload(doors: Doors, content: bytes | None = None, name: str = "map.png", **options: Any) -> httpx.Response:
    file = (name, telling("image/png") if content is None else content, "image/png")
    return await doors.client.post(PATH, files={"file": file}, **options)


async def ready(doors: Doors, **options: Any) -> Any:
    answer = await upload(doors, **options)
    assert answer.status_code == 201, answer.text
    return answer.json()


def a_message(url: str, thread: str | None = None, **block: Any) -> dict[str, Any]:
    parts = [
        {"type": "text", "text": "what is this?"},
        {"type": "binary", "mimeType": "image/png", "url": url, **block},
    ]
    return a_body(thread, str(uuid.uuid4()), messages=[{"id": "m1", "role": "user", "content": parts}])


def with_path(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}"


@pytest.mark.spec("http/attachments-upload")
async def test_a_form_is_kept_and_answered_with_an_address_to_read_it() -> None:
    async with open_doors() as doors:
        found = await ready(doors, name="../../holiday <1>.png")
        assert (found["status"], found["mimeType"], found["width"], found["height"]) == ("ready", "image/png", 6, 4)
        assert found["filename"] == "holiday 1.png"
        assert found["url"].startswith(doors.url)
        read = await httpx.AsyncClient(timeout=30, verify=NO_TLS).get(found["url"])
        assert (read.status_code, len(read.content), read.headers["content-type"]) == (200, found["size"], "image/png")
        assert SECRET.encode() not in read.content


@pytest.mark.spec("http/attachments-served")
async def test_a_file_is_served_so_that_no_browser_runs_it_and_no_cache_shares_it() -> None:
    async with open_doors() as doors:
        found = await ready(doors)
        headers = (await doors.client.get(found["url"])).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["content-security-policy"] == "default-src 'none'; sandbox"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"].startswith("private")
        assert headers["content-disposition"] == "inline; filename*=UTF-8''map.png"
        saved = (await doors.client.get(f"{PATH}/{found['attachmentId']}?download=true")).json()["url"]
        assert (await doors.client.get(saved)).headers["content-disposition"].startswith("attachment;")


@pytest.mark.spec("http/attachments-signed-upload")
async def test_bytes_are_put_once_under_a_signed_address_by_whoever_has_it() -> None:
    content = picture("image/jpeg")
    said = {"filename": "a.jpg", "mimeType": "image/jpeg", "size": len(content)}
    said["sha256"] = hashlib.sha256(content).hexdigest()
    async with open_doors() as doors:
        ann = await doors.key_for("ann")
        offered = (await doors.client.post(PATH, json=said, headers=ann)).json()
        assert offered["status"] == "pending"
        url, form = offered["upload"]["url"], offered["upload"]["headers"]
        waiting = await doors.client.get(f"{PATH}/{offered['attachmentId']}", headers=ann)
        until = {"expiresAt": offered["upload"]["expiresAt"]}
        assert (waiting.status_code, waiting.json()) == (
            200,
            {"attachmentId": offered["attachmentId"], "status": "pending", "upload": until},
        )
        for name, who in (
            (offered["attachmentId"], await doors.key_for("bob")),
            (offered["attachmentId"][:-1] + "x", ann),
            (offered["attachmentId"].replace(".", ".9", 1), ann),
        ):
            assert_problem(await doors.client.get(f"{PATH}/{name}", headers=who), 404, "not_found", "there is no such")
        both = await asyncio.gather(
            *(httpx.AsyncClient(timeout=30, verify=NO_TLS).put(url, content=content, headers=form) for _ in range(2))
        )
        answer, late = sorted(both, key=lambda one: one.status_code)
        assert (answer.status_code, answer.json()["attachmentId"]) == (201, offered["attachmentId"])
        assert late.status_code == 409
        assert_problem(await doors.client.put(url, content=content), 409, "conflict", "something was uploaded here")
        seen = (await doors.client.get(f"{PATH}/{offered['attachmentId']}", headers=ann)).json()
        assert (seen["status"], seen["filename"]) == ("ready", "a.jpg")


@pytest.mark.spec("http/attachments-signed-upload")
async def test_what_is_put_must_be_what_was_said() -> None:
    content = picture()
    async with open_doors() as doors:
        for said, status, reason in (
            ({"mimeType": "image/jpeg", "size": len(content)}, 422, "the file is image/png and not image/jpeg"),
            ({"mimeType": "image/png", "size": len(content) + 1}, 422, f"the file has {len(content)} bytes"),
            ({"mimeType": "image/png", "size": len(content) - 1}, 413, "the file has more than"),
            ({"mimeType": "image/png", "size": len(content), "sha256": "ab" * 32}, 422, "the file has another SHA-256"),
        ):
            url = (await doors.client.post(PATH, json=said)).json()["upload"]["url"]
            answer = await doors.client.put(url, content=content)
            assert (answer.status_code, answer.json()["detail"].startswith(reason)) == (status, True), answer.text
            changed = url.replace("upload=", "upload=x")
            assert_problem(await doors.client.put(changed, content=content), 403, "unauthorized", "this address is not")


@pytest.mark.spec("http/attachments-judged")
async def test_what_a_file_is_says_its_content_and_nobody_else() -> None:
    small = AttachmentLimits(file_bytes=2000, pixels=100)
    async with open_doors(uploading=small) as doors:
        for content, status, reason in (
            (b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>", 422, "an attachment must be one of"),
            (b"<!doctype html><script>alert(1)</script>", 422, "an attachment must be one of"),
            (PDF, 422, "an attachment must be one of image/png, image/jpeg, image/webp, image/gif"),
            (b"\x89PNG\r\n\x1a\n" + b"junk" * 9, 422, "this picture is not taken: it cannot be read"),
            (picture(size=(11, 10)), 422, "this picture is not taken: it has 11 x 10 pixels"),
            (b"", 422, "the attachment is empty"),
            (b"\x89PNG\r\n\x1a\n" + bytes(2000), 413, "an attachment may have at most 2000 bytes"),
        ):
            answer = await upload(doors, content)
            assert (answer.status_code, answer.json()["detail"][: len(reason)]) == (status, reason)
        rows = [row for row in await doors.house.store.audit() if row.action == "attachment.upload"]
        assert {row.result for row in rows} == {"invalid_argument", "payload_too_large"}
        assert len(rows) == 7


@pytest.mark.spec("http/attachments-judged")
async def test_a_pdf_is_kept_only_where_that_is_set_and_then_saved_rather_than_shown() -> None:
    async with open_doors(uploading=AttachmentLimits(pdf=True)) as doors:
        found = await ready(doors, content=PDF, name="a.pdf")
        assert found["mimeType"] == "application/pdf"
        read = await doors.client.get(found["url"])
        assert (read.content, read.headers["content-disposition"][:10]) == (PDF, "attachment")
        assert_problem(await doors.post(a_message(found["url"])), 422, "invalid_argument", "binary content url is not")


@pytest.mark.spec("http/attachments-body")
@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"json": {"mimeType": "image/png"}}, "size must be the number of bytes"),
        ({"json": {"mimeType": "image/svg+xml", "size": 5}}, "an attachment must be one of"),
        ({"json": {"mimeType": "image/png", "size": 5, "url": "x"}}, "unknown field 'url'"),
        ({"json": {"mimeType": "image/png", "size": 5, "sha256": "xyz"}}, "sha256 must be 64 hexadecimal digits"),
        ({"data": {"file": "text"}, "files": {"other": b"x"}}, "the form must have a file named `file`"),
        (
            {"content": b"--x\r\nbroken", "headers": {"Content-Type": "multipart/form-data; boundary=y"}},
            "the form cannot be read",
        ),
        ({"content": b"x", "headers": {"Content-Type": "multipart/form-data"}}, "the form cannot be read"),
        ({"files": [("file", b"x"), ("file", b"y")]}, "the form cannot be read"),
    ],
)
async def test_a_request_that_makes_no_sense_is_told_why(how: dict[str, Any], reason: str) -> None:
    async with open_doors() as doors:
        assert_problem(await doors.client.post(PATH, **how), 422, "invalid_argument", reason)


@pytest.mark.spec("http/attachments-quota")
async def test_one_user_can_keep_so_much_and_make_room_again() -> None:
    async with open_doors() as doors:
        size = (await ready(doors, content=picture()))["size"]
    async with open_doors(uploading=AttachmentLimits(user_bytes=2 * size)) as doors:
        ann, bob = await doors.key_for("ann"), await doors.key_for("bob")
        first, _ = [await ready(doors, content=picture(), headers=ann) for _ in range(2)]
        refused = await upload(doors, picture(), headers=ann)
        assert_problem(refused, 413, "payload_too_large", "your uploads would hold more than")
        assert (await upload(doors, picture(), headers=bob)).status_code == 201
        gone = await doors.client.delete(f"{PATH}/{first['attachmentId']}", headers=ann)
        assert gone.status_code == 204
        assert (await upload(doors, picture(), headers=ann)).status_code == 201


@pytest.mark.spec("http/attachments-foreign")
async def test_a_file_of_somebody_else_looks_like_none() -> None:
    async with open_doors() as doors:
        ann, bob = await doors.key_for("ann"), await doors.key_for("bob")
        found = await ready(doors, headers=ann)
        for path in (f"{PATH}/{found['attachmentId']}", f"{PATH}/art_nothing"):
            for method in ("GET", "DELETE"):
                answer = await doors.client.request(method, path, headers=bob)
                assert_problem(answer, 404, "not_found", "there is no such attachment")
        assert_problem(
            await doors.post(a_message(found["url"]), headers=bob), 422, "invalid_argument", "binary content"
        )


def made(source: Any, user: str | None = "ann", **more: Any) -> NewArtifact:
    """A file of a run in one of her conversations."""
    return NewArtifact("default", source, user_id=user, session_id=str(uuid.uuid4()), run_id="r1", **more)


@pytest.mark.spec("http/attachments-of-tools")
async def test_what_a_tool_gave_back_is_read_by_the_user_of_the_run_and_only_taken_along_if_no_picture() -> None:
    async with open_doors() as doors:
        ann = await doors.key_for("ann")
        keep = doors.house.artifacts.keep
        drawn = await keep(made("tool", name="chart.png"), picture())
        page = await keep(made("tool", name="page.html", claimed_mime="text/html"), b"<script>alert(1)</script>")
        for row, shown in ((drawn, "inline"), (page, "attachment")):
            found = (await doors.client.get(f"{PATH}/{row.artifact_id}", headers=ann)).json()
            assert (found["filename"], found["size"], found["mimeType"]) == (row.name, row.size, row.mime_type)
            read = await doors.client.get(found["url"])
            assert (read.status_code, len(read.content)) == (200, row.size)
            assert read.headers["content-disposition"].startswith(f"{shown};")
        gone = await doors.client.delete(f"{PATH}/{drawn.artifact_id}", headers=ann)
        assert_problem(gone, 409, "conflict", "this file is part of a conversation")


@pytest.mark.spec("http/attachments-of-tools")
async def test_what_a_tool_gave_back_to_others_looks_like_none_and_so_does_what_an_agent_keeps_to_itself() -> None:
    async with open_doors() as doors:
        ann, bob = await doors.key_for("ann"), await doors.key_for("bob", role="admin")
        keep = doors.house.artifacts.keep
        foreign = await keep(made("tool"), picture())
        nobodys = await keep(made("tool", user=None), picture())
        private = await keep(made("runner"), b"my own notes")
        elsewhere = await keep(replace(made("tool"), workspace_id="other"), picture())
        tries = [(bob, foreign), (ann, nobodys), (bob, nobodys), (ann, private), (ann, elsewhere)]
        for who, row in tries:
            for method in ("GET", "DELETE"):
                answer = await doors.client.request(method, f"{PATH}/{row.artifact_id}", headers=who)
                assert_problem(answer, 404, "not_found", "there is no such attachment")


@pytest.mark.spec("http/attachments-served")
async def test_an_address_that_was_changed_or_is_over_opens_nothing() -> None:
    async with open_doors() as doors:
        found = await ready(doors)
        over = read_address(KEYS, Owner("default", "dev"), found["attachmentId"], expires=1)
        for url in (
            over,
            with_path(found["url"])[:-1] + "x",
            f"{PATH}/{found['attachmentId']}/content",
            f"{PATH}/x/content",
        ):
            assert_problem(await doors.client.get(url), 403, "unauthorized", "this address is not valid")
        assert_problem(await doors.post(a_message(over)), 422, "invalid_argument", "binary content url is not a valid")


@pytest.mark.spec("http/attachments-keys")
async def test_an_address_that_an_older_key_signed_still_opens() -> None:
    async with open_doors() as doors:
        found = await ready(doors)
        old = SigningKeys("k0", {"k0": KEYS.secrets["k0"]})
        url = read_address(old, Owner("default", "dev"), found["attachmentId"], expires=2**40)
        assert (await doors.client.get(url)).status_code == 200


async def read_by(doors: Doors, run: AtRunner) -> bytes:
    [file] = run.context["input"]["attachments"]
    answer = await ask(doors.house, run, "artifacts.read_range", artifact_id=file["artifact_id"])
    return b64decode(answer["content_base64"])


@pytest.mark.spec("http/attachments-in-a-run")
async def test_the_run_reads_the_file_and_history_gives_it_a_fresh_address() -> None:
    async with open_doors() as doors:
        doors.gateway.permissions = {"artifacts": ["metadata", "read"]}
        found = await ready(doors)
        body = a_message(found["url"])
        assert (await doors.post(body)).status_code == 202
        run = await doors.gateway.next()
        assert await read_by(doors, run) == (await doors.client.get(found["url"])).content
        await doors.answered(run, "a map")
        told = (await doors.client.get(f"/api/v1/agent/history?threadId={body['threadId']}")).json()
        [file] = told["messages"][0]["attachments"]
        assert file["mimeType"] == "image/png"
        assert (await doors.client.get(file["url"])).status_code == 200
        whole = json.dumps([fact.read_payload() for fact in await doors.house.store.read(body["threadId"])])
        assert "signature" not in whole
        seen = (await doors.client.get(f"{PATH}/{found['attachmentId']}")).json()
        assert (seen["threadId"], seen["expiresAt"] > found["expiresAt"]) == (body["threadId"], True)
        gone = await doors.client.delete(f"{PATH}/{found['attachmentId']}")
        assert_problem(gone, 409, "conflict", "this file is part of a conversation")


@pytest.mark.spec("http/attachments-in-a-run")
async def test_a_file_is_sent_again_in_another_conversation_as_a_copy_of_its_own() -> None:
    async with open_doors() as doors:
        doors.gateway.permissions = {"artifacts": ["metadata", "read"]}
        found, ids = await ready(doors), set[str]()
        for thread in (str(uuid.uuid4()), str(uuid.uuid4())):
            assert (await doors.post(a_message(found["url"], thread))).status_code == 202
            run = await doors.gateway.next()
            assert await read_by(doors, run)
            ids.add(run.context["input"]["attachments"][0]["artifact_id"])
            await doors.answered(run, "ok")
        assert len(ids) == 2


@pytest.mark.spec("http/attachments-in-a-run")
async def test_a_message_that_is_refused_leaves_its_file_where_it_was() -> None:
    async with open_doors() as doors:
        ann, bob = await doors.key_for("ann"), await doors.key_for("bob")
        foreign = a_body()
        assert (await doors.post(foreign, headers=bob)).status_code == 202
        found = await ready(doors, headers=ann)
        refused = await doors.post(a_message(found["url"], foreign["threadId"]), headers=ann)
        assert refused.status_code == 404
        row = await doors.house.store.artifact(found["attachmentId"])
        assert row is not None
        assert (row.conversation_id, row.published) == (None, False)


def at(url: str, **parts: str) -> str:
    return urlsplit(url)._replace(**parts).geturl()


def of_long_ago(found: Any) -> str:
    return read_address(KEYS, Owner("default", "dev"), found["attachmentId"], expires=1)


@pytest.mark.spec("http/idempotent")
async def test_the_retry_of_an_accepted_run_answers_the_same_although_its_address_has_expired_or_was_renewed() -> None:
    async with open_doors() as doors:
        found = await ready(doors)
        body = a_message(found["url"])
        first = await doors.post(body)
        assert first.status_code == 202
        renewed = (await doors.client.get(f"{PATH}/{found['attachmentId']}?download=true")).json()["url"]
        assert renewed != found["url"]
        for url in (found["url"], renewed, of_long_ago(found)):
            again = await doors.post(a_message(url, body["threadId"]) | {"runId": body["runId"]})
            assert (again.status_code, again.json()) == (202, first.json())
        other = await ready(doors)
        taken = await doors.post(a_message(other["url"], body["threadId"]) | {"runId": body["runId"]})
        assert taken.status_code == 409
        await doors.answered(await doors.gateway.next(), "a map")


@pytest.mark.spec("http/attachments-in-a-run")
async def test_an_address_at_another_host_is_not_ours_whatever_signed_it() -> None:
    async with open_doors() as doors:
        url = (await ready(doors))["url"]
        host = urlsplit(url).netloc
        foreign = [
            at(url, netloc="evil.example"),
            at(url, scheme="https"),
            at(url, scheme="ftp"),
            at(url, netloc=f"somebody@{host}"),
            at(url, netloc=f"somebody:secret@{host}"),
            at(url, netloc=f"{host.partition(':')[0]}:1"),
            at(url, scheme="", netloc="evil.example"),
            at(url, scheme=""),
        ]
        for wrong in foreign:
            answer = await doors.post(a_message(wrong))
            assert_problem(answer, 422, "invalid_argument", "binary content url is not a valid signed URL")
        for right in (url, with_path(url)):
            assert (await doors.post(a_message(right))).status_code == 202
            await doors.answered(await doors.gateway.next(), "ok")


async def test_too_many_uploads_at_once_are_asked_to_come_again() -> None:
    async with open_doors(uploading=AttachmentLimits(at_once=1)) as doors:
        answers = await asyncio.gather(*(upload(doors) for _ in range(3)))
        assert min(answer.status_code for answer in answers) == 201
        assert {answer.status_code for answer in answers} <= {201, 429}
