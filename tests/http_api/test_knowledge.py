"""Knowledge bases over HTTP: everybody of a workspace looks, administrators act, strangers find nothing."""

import asyncio
from base64 import b64encode
from typing import Any

import httpx
import pytest

from http_api.doors import Doors, assert_problem, open_doors

pytestmark = pytest.mark.anyio

ROOT = "/api/v1/knowledge"


async def ended(doors: Doors, job: dict[str, Any], **options: Any) -> dict[str, Any]:
    async with asyncio.timeout(30):
        while job["status"] not in {"completed", "failed"}:
            await asyncio.sleep(0.02)
            job = (await doors.client.get(f"{ROOT}/{job['kbId']}/jobs/{job['jobId']}", **options)).json()
    return job


async def added(doors: Doors, name: str, text: str, **options: Any) -> dict[str, Any]:
    answer = await doors.client.post(f"{ROOT}/kb/documents", json={"name": name, "text": text}, **options)
    assert answer.status_code == 202, answer.text
    return await ended(doors, answer.json(), **options)


async def search(doors: Doors, query: str, **more: Any) -> httpx.Response:
    return await doors.client.post(f"{ROOT}/kb/search", json={"query": query, **more})


@pytest.mark.spec("http/knowledge-bases")
async def test_a_base_is_made_listed_and_made_only_once() -> None:
    async with open_doors() as doors:
        made = await doors.client.post(ROOT, json={"kbId": "kb", "name": "Handbook", "description": "all"})
        assert made.status_code == 201
        listed = (await doors.client.get(ROOT)).json()["bases"]
        assert [(base["kbId"], base["name"]) for base in listed] == [("kb", "Handbook")]
        assert (await doors.client.get(f"{ROOT}/kb")).json() == listed[0]
        again = await doors.client.post(ROOT, json={"kbId": "kb"})
        assert_problem(again, 409, "conflict", "there is a knowledge base 'kb' already")
        assert (await doors.client.post(ROOT, json={"kbId": "Not An Id"})).status_code == 422
        assert (await doors.client.post(ROOT, json={"kbId": "x", "colour": "red"})).status_code == 422
        rows = [row for row in await doors.house.store.audit() if row.action == "knowledge.create"]
        assert [row.resource for row in rows] == ["kb"]


@pytest.mark.spec("http/knowledge-bases")
async def test_users_look_and_administrators_act() -> None:
    async with open_doors() as doors:
        admin, user = await doors.key_for("ann", role="admin"), await doors.key_for("bob")
        stranger = await doors.key_for("eve", workspace="elsewhere", role="admin")
        assert (await doors.client.post(ROOT, json={"kbId": "kb"}, headers=user)).status_code == 403
        assert (await doors.client.post(ROOT, json={"kbId": "kb"}, headers=admin)).status_code == 201
        await added(doors, "a.txt", "needle", headers=admin)
        asked = {"query": "needle"}
        found = await doors.client.post(f"{ROOT}/kb/search", json=asked, headers=user)
        assert len(found.json()["results"]) == 1
        for method, path in (("DELETE", "/kb"), ("POST", "/kb/documents"), ("DELETE", "/kb/documents/x")):
            assert (await doors.client.request(method, ROOT + path, json={}, headers=user)).status_code == 403
        for method, path in (("GET", "/kb"), ("POST", "/kb/search"), ("GET", "/kb/documents"), ("DELETE", "/kb")):
            body = asked if path.endswith("search") else None
            answer = await doors.client.request(method, ROOT + path, json=body, headers=stranger)
            assert_problem(answer, 404, "not_found", "there is no knowledge base 'kb'")


@pytest.mark.spec("http/knowledge-documents")
async def test_a_document_comes_as_text_as_base64_or_as_bytes() -> None:
    async with open_doors() as doors:
        headers = await doors.key_for("ann", role="admin")
        await doors.client.post(ROOT, json={"kbId": "kb"}, headers=headers)
        url = f"{ROOT}/kb/documents"
        bodies: list[dict[str, Any]] = [
            {"json": {"name": "a.txt", "text": "needle one"}},
            {"json": {"name": "b.txt", "contentBase64": b64encode("needle 二".encode()).decode()}},
            {"content": b"needle three", "params": {"name": "c.txt"}},
        ]
        for body in bodies:
            job = (await doors.client.post(url, headers=headers, **body)).json()
            assert (await ended(doors, job, headers=headers))["status"] == "completed"
        listed = (await doors.client.get(url, headers=headers)).json()
        assert sorted(document["name"] for document in listed["documents"]) == ["a.txt", "b.txt", "c.txt"]
        assert listed["hasMore"] is False


@pytest.mark.spec("http/knowledge-documents")
@pytest.mark.parametrize(
    "body",
    [
        {"text": "no name"},
        {"name": "a"},
        {"name": "a", "text": "x", "contentBase64": "eA=="},
        {"name": "a", "contentBase64": "???"},
        {"name": "a", "text": "x", "metadata": []},
        {"name": "a", "text": "x", "colour": "red"},
        [],
    ],
)
async def test_a_document_that_is_none_is_refused_with_a_sentence(body: Any) -> None:
    async with open_doors() as doors:
        await doors.client.post(ROOT, json={"kbId": "kb"})
        answer = await doors.client.post(f"{ROOT}/kb/documents", json=body)
        assert_problem(answer, 422, "invalid_argument", "")
        assert len(answer.json()["detail"]) > 15


@pytest.mark.spec("http/knowledge-jobs")
async def test_a_job_says_how_far_it_is_and_how_it_ended() -> None:
    async with open_doors() as doors:
        await doors.client.post(ROOT, json={"kbId": "kb"})
        done = await added(doors, "a.md", "# One\nneedle\n# Two\nhay")
        assert (done["status"], done["done"], done["total"], done["message"]) == ("completed", 2, 2, "2 passages")
        again = await added(doors, "a.md", "# One\nneedle\n# Two\nhay")
        assert again["message"] == "unchanged: a.md has the same content"
        bad = (await doors.client.post(f"{ROOT}/kb/documents", json={"name": "x.pdf", "text": "%PDF-1.4 no"})).json()
        failed = await ended(doors, bad)
        assert failed["status"] == "failed"
        assert failed["message"].startswith("x.pdf cannot be read: ")
        unknown = await doors.client.get(f"{ROOT}/kb/jobs/nothing")
        assert_problem(unknown, 404, "not_found", "there is no such job")


@pytest.mark.spec("http/knowledge-jobs")
async def test_what_has_arrived_is_no_longer_on_its_way() -> None:
    async with open_doors() as doors:
        await doors.client.post(ROOT, json={"kbId": "kb"})
        await added(doors, "a.txt", "needle")
        assert (await doors.client.get(f"{ROOT}/kb/jobs")).json() == {"jobs": [], "hasMore": False}
        unknown = await doors.client.get(f"{ROOT}/none/jobs")
        assert_problem(unknown, 404, "not_found", "there is no knowledge base 'none'")


@pytest.mark.spec("http/knowledge-search")
async def test_a_passage_comes_with_its_place() -> None:
    async with open_doors() as doors:
        await doors.client.post(ROOT, json={"kbId": "kb"})
        await added(doors, "手册.md", "# 请假\n每年十五天年假。")
        (passage,) = (await search(doors, "年假", topK=3)).json()["results"]
        assert passage["place"]["document"] == "手册.md"
        assert passage["place"]["heading"] == "请假"
        assert (passage["place"]["start"], passage["place"]["end"]) == (0, len(passage["text"]))
        assert (await search(doors, "年假", filters={"documents": ["other"]})).json()["results"] == []
        for wrong in ({"topK": "3"}, {"topK": 1000}, {"filters": {"author": "x"}}, {"filters": []}):
            assert (await search(doors, "年假", **wrong)).status_code == 422


@pytest.mark.spec("http/knowledge-deleted")
async def test_delete_deletes() -> None:
    async with open_doors() as doors:
        await doors.client.post(ROOT, json={"kbId": "kb"})
        document = (await added(doors, "a.txt", "needle"))["documentId"]
        assert (await doors.client.delete(f"{ROOT}/kb/documents/{document}")).status_code == 204
        assert (await search(doors, "needle")).json()["results"] == []
        assert (await doors.client.delete(f"{ROOT}/kb/documents/{document}")).status_code == 404
        assert (await doors.client.delete(f"{ROOT}/kb")).status_code == 204
        assert (await search(doors, "needle")).status_code == 404
        assert (await doors.client.get(ROOT)).json()["bases"] == []
