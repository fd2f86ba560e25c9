"""Automations over HTTP: made, changed, fired, looked at; and the native door in automation mode."""

from typing import Any

import pytest

from http_api.doors import Doors, a_body, assert_problem, open_doors
from http_api.test_openapi import check, described

pytestmark = pytest.mark.anyio
BASE = "/api/v1/automations"
JOB = {"name": "news", "prompt": "What is new?", "cron": "0 9 * * *", "timeZone": "Europe/Oslo"}
AUTOMATION = {"runtime_mode": "automation"}


async def made(doors: Doors, **changes: Any) -> dict[str, Any]:
    answer = await doors.client.post(BASE, json=JOB | changes)
    assert answer.status_code == 201, answer.text
    check(described(BASE, "POST", 201), answer.json())
    return answer.json()


@pytest.mark.spec("http/automations")
async def test_a_job_is_made_looked_at_changed_and_taken_away() -> None:
    async with open_doors() as doors:
        job = await made(doors)
        one = f"{BASE}/{job['jobId']}"
        assert job["nextAt"] == job["upcoming"][0]
        assert len(job["upcoming"]) == 5
        assert (await doors.client.get(one)).json() == job
        assert (await doors.client.get(BASE)).json() == {"automations": [job]}
        changed = await doors.client.patch(one, json={"enabled": False, "name": "old news"})
        assert (changed.status_code, changed.json()["name"], changed.json()["nextAt"]) == (200, "old news", None)
        assert (await doors.client.delete(one)).status_code == 204
        assert_problem(await doors.client.get(one), 404, "not_found", "there is no such automation")


@pytest.mark.spec("http/automations")
async def test_what_is_wrong_with_a_job_is_said_and_a_slip_is_named() -> None:
    async with open_doors() as doors:
        answer = await doors.client.post(BASE, json=JOB | {"cron": "99 * * * *"})
        assert_problem(answer, 422, "invalid_argument", "cron: '99 * * * *' is no cron line")
        answer = await doors.client.post(BASE, json=JOB | {"timezone": "UTC"})
        assert_problem(answer, 422, "invalid_argument", "unknown field 'timezone'; did you mean timeZone?")


@pytest.mark.spec("http/automations-own")
async def test_a_job_of_somebody_else_looks_like_none() -> None:
    async with open_doors() as doors:
        job = await made(doors)
        bob = await doors.key_for("bob")
        for method, path in (("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/run"), ("GET", "/firings")):
            body = {"json": {}} if method == "PATCH" else {}
            foreign = await doors.client.request(method, f"{BASE}/{job['jobId']}{path}", headers=bob, **body)
            random = await doors.client.request(method, f"{BASE}/nothing{path}", headers=bob, **body)
            assert (foreign.status_code, foreign.text) == (404, random.text)
        thread = a_body(job["threadId"], forwardedProps=AUTOMATION)
        refused = await doors.client.post("/api/v1/agent/runs", json=thread, headers=bob)
        assert_problem(refused, 422, "invalid_argument", "invalid RunAgentInput.forwardedProps")


@pytest.mark.spec("http/automation-run")
async def test_a_run_by_hand_is_accepted_and_shows_among_the_firings() -> None:
    async with open_doors() as doors:
        job = await made(doors)
        accepted = await doors.client.post(f"{BASE}/{job['jobId']}/run")
        assert accepted.status_code == 202
        run = await doors.gateway.next()
        await doors.answered(run, "nothing new")
        answer = await doors.client.get(f"{BASE}/{job['jobId']}/firings?limit=1")
        check(described(f"{BASE}/{{job}}/firings", "GET", 200), answer.json())
        [firing] = answer.json()["firings"]
        assert (firing["result"], firing["taskId"]) == ("manual", accepted.json()["taskId"])
        day = await doors.client.get(f"/api/v1/agent/history?threadId={job['threadId']}")
        assert [item["content"] for item in day.json()["messages"]] == ["nothing new"]
        for wrong in ("limit=0", "limit=x", "before=-"):
            assert (await doors.client.get(f"{BASE}/{job['jobId']}/firings?{wrong}")).status_code == 422


@pytest.mark.spec("http/history-thread")
async def test_the_last_conversation_of_a_person_is_none_that_a_job_talks_in() -> None:
    async with open_doors() as doors:
        mine = a_body()
        assert (await doors.post(mine)).status_code == 202
        await doors.answered(await doors.gateway.next(), "hello")
        job = await made(doors)
        assert (await doors.client.post(f"{BASE}/{job['jobId']}/run")).status_code == 202
        await doors.answered(await doors.gateway.next(), "nothing new")
        assert (await doors.client.get("/api/v1/agent/history")).json()["threadId"] == mine["threadId"]
        await doors.client.patch(f"/api/v1/agent/sessions/{mine['threadId']}", json={"archived": True})
        assert (await doors.client.get("/api/v1/agent/history")).json()["threadId"] is None


@pytest.mark.spec("http/sessions-list", "http/sessions-look", "http/sessions-search")
async def test_a_conversation_that_a_job_talks_in_is_marked_in_the_list() -> None:
    async with open_doors() as doors:
        mine = a_body()
        assert (await doors.post(mine)).status_code == 202
        await doors.answered(await doors.gateway.next(), "nothing new")
        job = await made(doors)
        assert (await doors.client.post(f"{BASE}/{job['jobId']}/run")).status_code == 202
        await doors.answered(await doors.gateway.next(), "nothing new")
        sessions = "/api/v1/agent/sessions"
        for query in ({}, {"query": "nothing new"}):
            listed = (await doors.client.get(sessions, params=query)).json()["sessions"]
            marks = {entry["threadId"]: entry.get("automationId") for entry in listed}
            assert marks == {job["threadId"]: job["jobId"], mine["threadId"]: None}
        assert (await doors.client.get(f"{sessions}/{job['threadId']}")).json()["automationId"] == job["jobId"]
        assert "automationId" not in (await doors.client.get(f"{sessions}/{mine['threadId']}")).json()
        assert (await doors.client.delete(f"{BASE}/{job['jobId']}")).status_code == 204
        assert "automationId" not in (await doors.client.get(f"{sessions}/{job['threadId']}")).json()


@pytest.mark.spec("http/automation-mode")
async def test_automation_on_a_jobs_thread_takes_tools_and_context_from_the_job() -> None:
    async with open_doors() as doors:
        context = [{"description": "team", "value": "red"}]
        job = await made(doors, agentId="two", config={"enabledTools": [], "context": context})
        sent = [{"description": "mine", "value": "no"}]
        answer = await doors.post(a_body(job["threadId"], forwardedProps=AUTOMATION, context=sent))
        assert answer.status_code == 202, answer.text
        run = await doors.gateway.next()
        told = run.context["adapter"]["extra"]["params"]
        assert (told["context"], told["forwardedProps"]) == (context, AUTOMATION)
        assert run.context["resources"]["tools"] == []
        assert run.context["conversation"]["bot_id"] == "two"
        await doors.answered(run, "done")


@pytest.mark.spec("http/automation-mode")
async def test_the_first_rule_that_is_broken_still_answers() -> None:
    async with open_doors() as doors:
        job = await made(doors)
        body = a_body(job["threadId"], forwardedProps=AUTOMATION, messages=[])
        words = "RunAgentInput.messages must contain exactly one user message"
        assert_problem(await doors.post(body), 422, "invalid_argument", words)
        elsewhere = a_body(forwardedProps=AUTOMATION, messages=[])
        assert_problem(await doors.post(elsewhere), 422, "invalid_argument", "invalid RunAgentInput.forwardedProps")
