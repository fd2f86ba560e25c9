"""The table of the native door, whole: each rule just inside and just outside, in every spelling, by HTTP, on paper."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from http_api.doors import assert_problem, open_doors
from http_api.test_run_input import CLIENT_TIME, THREAD, USER, a_body, image, says, with_client_time, without
from paddock.host.zones import is_time_zone
from paddock.ports.attachments import AttachmentRef
from paddock.rules.run.input import SENTENCES, NativeInput, Problem, World, read_run_input

PAGE = (Path(__file__).parents[2] / "docs/spec/http.md").read_text()
Body = dict[str, Any]
JSON = {"Content-Type": "application/json"}
SYSTEM = {"id": "s", "role": "system", "content": "x"}


def of_size(size: int) -> Body:
    empty = len(json.dumps(a_body(state="")).encode())
    return a_body(state="x" * (size - empty))


def chat(**more: Any) -> Body:
    return a_body(forwardedProps={"runtime_mode": "chat", **more})


# The rules in their order: bodies that are just inside, and bodies that are just outside.
TABLE: list[tuple[list[Body], list[Body]]] = [
    ([of_size(262_143), of_size(262_144)], [of_size(262_145)]),
    (
        [a_body(threadId=THREAD), a_body(threadId=THREAD.upper())],
        [a_body(threadId=THREAD[:-1]), a_body(threadId=THREAD + "0")],
    ),
    ([a_body(runId="界" * 127), a_body(runId="界" * 128)], [a_body(runId="界" * 129)]),
    (
        [a_body(messages=[USER, *[SYSTEM] * 198]), a_body(messages=[USER, *[SYSTEM] * 199])],
        [a_body(messages=[USER, *[SYSTEM] * 200])],
    ),
    (
        [
            a_body(messages=[USER | {"content": "界" * 9_999}]),
            says({"type": "text", "text": "界" * 9_999}, {"type": "text", "text": "x"}),
        ],
        [says({"type": "text", "text": "界" * 10_000}, {"type": "text", "text": "x"})],
    ),
    (
        [chat(), chat(client_time=CLIENT_TIME)],
        [a_body(forwardedProps={}), chat(more=1), a_body(forwardedProps={"runtime_mode": "talk"})],
    ),
    ([a_body(messages=[USER])], [a_body(messages=[]), a_body(messages=[SYSTEM]), a_body(messages=[USER, USER])]),
    ([a_body(messages=[USER, SYSTEM])], [a_body(messages=[SYSTEM, USER])]),
    (
        [says(image(mimeType="image/x"))],
        [says(image(mimeType="image/")), says(image(mimeType="video/x")), says(without(image(), "mimeType"))],
    ),
    ([says(image(url="u"))], [says(image(url="")), says(without(image(), "url"))]),
    ([says(image(data=None))], [says(image(data=""))]),
    ([says(image(), image()), says(image(), image(), image())], [says(image(), image(), image(), image())]),
    ([with_client_time(device_timezone="UTC")], [with_client_time(device_timezone="utc+0"), chat(client_time={})]),
    (
        [with_client_time(client_now_iso="2026-03-16T09:12:33Z")],
        [with_client_time(client_now_iso="2026-03-16T09:12:33")],
    ),
    (
        [with_client_time(client_epoch_ms=0)],
        [with_client_time(client_epoch_ms=-1), with_client_time(client_epoch_ms=0.0)],
    ),
]

YOURS = frozenset({"state", "parameters", "forwardedProps"})
"""What is inside these is not ours to rename."""


def snake(name: str) -> str:
    return re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()


def spelled(value: Any, spelling: str) -> Any:
    if isinstance(value, list):
        return [spelled(item, spelling) for item in value]
    if not isinstance(value, dict):
        return value
    inner = {key: item if key in YOURS else spelled(item, spelling) for key, item in value.items()}
    other = {snake(key): item for key, item in inner.items()}
    return {"camel": inner, "snake": other, "both": inner | other}[spelling]


CASES = [
    pytest.param(sentence, body, allowed, spelling, id=f"{number}-{spelling}-{'in' if allowed else 'out'}-{index}")
    for number, (sentence, (inside, outside)) in enumerate(zip(SENTENCES, TABLE, strict=False), 1)
    for allowed, bodies in ((True, inside), (False, outside))
    for index, body in enumerate(bodies)
    for spelling in ("camel", "snake", "both")
    if number > 1 or spelling == "camel"  # another spelling has another size
]


@pytest.mark.spec("http/rules-in-order")
@pytest.mark.parametrize(("sentence", "body", "allowed", "spelling"), CASES)
def test_each_rule_holds_to_its_limit_and_not_a_step_further(
    sentence: str, body: Body, allowed: bool, spelling: str
) -> None:
    answer = read_run_input(json.dumps(spelled(body, spelling)).encode(), World(is_time_zone))
    if allowed:
        assert isinstance(answer, NativeInput), answer
    else:
        assert isinstance(answer, Problem)
        assert answer.message == sentence


def test_the_code_has_the_fifteen_rules_and_the_one_about_signatures() -> None:
    assert len(SENTENCES) == 16 == len(set(SENTENCES)) == len(TABLE) + 1


@pytest.mark.spec("http/rules-in-order")
def test_the_table_of_the_page_is_the_table_of_the_code() -> None:
    table = PAGE.split("| rule | sentence |")[1].split("\n\n")[0]
    assert tuple(re.findall(r"\| `([^`]+)` \|$", table, re.MULTILINE)) == SENTENCES


@pytest.mark.anyio
@pytest.mark.spec("http/rules-in-order")
async def test_over_http_every_rule_answers_with_its_sentence_as_detail() -> None:
    async with open_doors() as doors:
        for sentence, (_, outside) in zip(SENTENCES, TABLE, strict=False):
            too_large = sentence == SENTENCES[0]
            status, code = (413, "payload_too_large") if too_large else (422, "invalid_argument")
            answer = await doors.client.post("/api/v1/agent/runs", content=json.dumps(outside[0]), headers=JSON)
            assert_problem(answer, status, code, sentence)
            assert answer.json()["detail"] == sentence
        assert_problem(await doors.post(says(image())), 422, "invalid_argument", SENTENCES[-1])


# --- the published examples, as they are written ----------------------------------------------------------------------

EXAMPLES = (Path(__file__).parent / "native_examples.json").read_text(encoding="utf-8")


class TheirStorage:
    """Every address of the published example was signed here, for whoever asks."""

    async def resolve(self, url: str, **whose: Any) -> AttachmentRef | None:
        ours = url.startswith("https://storage.example.com/agent-inputs/")
        return AttachmentRef("art-1", "image/png", 3, "image.png") if ours else None

    def signed_url(self, artifact_id: str, *, workspace_id: str, user_id: str, by: Any = None) -> str | None:
        return f"https://storage.example.com/{artifact_id}?signature=fresh"


@pytest.mark.anyio
async def test_every_published_example_is_accepted_and_answered_in_the_published_shape() -> None:
    async with open_doors(attachments=TheirStorage()) as doors:
        for index, (name, body) in enumerate(json.loads(EXAMPLES)["requests"].items()):
            answer = await doors.post(body)
            assert answer.status_code == 202, (name, answer.text)
            accepted = answer.json()
            assert accepted.keys() == {"taskId", "threadId", "runId", "created"}
            assert (accepted["threadId"], accepted["runId"]) == (body["threadId"], body["runId"])
            assert accepted["created"] is (index == 0)


@pytest.mark.anyio
async def test_an_attachment_reaches_the_runner_as_an_artifact_and_its_url_reaches_nobody() -> None:
    async with open_doors(attachments=TheirStorage()) as doors:
        body = json.loads(EXAMPLES)["requests"]["with an image"]
        assert (await doors.post(body)).status_code == 202
        run = await doors.gateway.next()
        assert [dict(found) for found in run.context["input"]["attachments"]] == [
            {"artifact_id": "art-1", "mime_type": "image/png", "size": 3, "name": "image.png"}
        ]
        [item] = await doors.house.store.transcript(body["threadId"])
        assert b"signature" not in item.content_json
        assert json.loads(item.content_json)["content"][1]["id"] == "art-1"


@pytest.mark.anyio
async def test_an_address_that_is_not_ours_is_refused_and_never_fetched() -> None:
    async with open_doors() as doors:
        answer = await doors.post(json.loads(EXAMPLES)["requests"]["with an image"])
        assert_problem(answer, 422, "invalid_argument", "binary content url is not a valid signed URL")
