"""Looking over a workspace: a person sees their own runs, an administrator everybody's, and each sees why."""

import time
from typing import Any

import pytest

from contracts.test_calls import used
from http_api.doors import Doors, a_body, assert_problem, open_doors
from paddock.rules.people import Lap, paces

pytestmark = pytest.mark.anyio
RUNS = "/api/v1/agent/runs"


async def a_run_of(doors: Doors, headers: dict[str, str], text: str = "hi") -> dict[str, Any]:
    """One run, answered."""
    accepted = (await doors.post(a_body(run=f"run-{text}", text=text), headers=headers)).json()
    await doors.answered(await doors.gateway.next(), "hello")
    return accepted


@pytest.mark.spec("http/runs-list")
async def test_a_person_lists_their_own_runs_and_an_administrator_those_of_the_workspace() -> None:
    async with open_doors() as doors:
        ann, bob = await doors.key_for("ann"), await doors.key_for("bob", role="admin")
        foreign = await doors.key_for("eve", workspace="other", role="admin")
        first, second = await a_run_of(doors, ann, "one"), await a_run_of(doors, bob, "two")

        async def listed(query: str, headers: dict[str, str]) -> list[str]:
            answer = await doors.client.get(f"{RUNS}{query}", headers=headers)
            return [run["taskId"] for run in answer.json()["runs"]]

        assert await listed("", ann) == [first["taskId"]]
        assert await listed("?scope=workspace", bob) == [second["taskId"], first["taskId"]]
        assert await listed("?scope=workspace", foreign) == []
        assert await listed(f"?threadId={first['threadId']}", ann) == [first["taskId"]]
        assert await listed(f"?threadId={first['threadId']}", bob) == []
        assert await listed("?status=running,queued", ann) == []
        page = (await doors.client.get(f"{RUNS}?scope=workspace&limit=1", headers=bob)).json()
        assert await listed(f"?scope=workspace&before={page['next']}", bob) == [first["taskId"]]
        assert page["runs"][0]["userId"] == "bob"
        refused = await doors.client.get(f"{RUNS}?scope=workspace", headers=ann)
        assert_problem(refused, 403, "unauthorized", "to look over the workspace")


@pytest.mark.parametrize("query", ["scope=all", "status=odd", "limit=0", "limit=201", "limit=x"])
async def test_what_cannot_be_asked_is_said(query: str) -> None:
    async with open_doors() as doors:
        answer = await doors.client.get(f"{RUNS}?{query}")
        assert_problem(answer, 422, "invalid_argument", query.partition("=")[0])


@pytest.mark.spec("http/run-story")
async def test_the_story_of_a_run_tells_what_happened_and_what_was_decided_in_order_of_time() -> None:
    async with open_doors() as doors:
        accepted = await a_run_of(doors, {})
        story = (await doors.client.get(f"{RUNS}/{accepted['taskId']}/story")).json()
        assert (story["run"]["status"], story["run"]["taskId"]) == ("completed", accepted["taskId"])
        assert "actions" in story["grant"]
        times = [entry["time"] for entry in story["entries"]]
        assert times == sorted(times)
        names = [entry["name"] for entry in story["entries"] if entry["kind"] == "event"]
        assert "USER_INPUT" in names
        assert names[-1].startswith("AGENT_OUTPUT:FINAL")
        decisions = [entry for entry in story["entries"] if entry["kind"] == "decision"]
        assert decisions
        assert all("reason" in entry["detail"] for entry in decisions)


@pytest.mark.spec("http/run-story")
async def test_reasons_are_for_administrators_whose_look_is_on_record_and_strangers_find_nothing() -> None:
    async with open_doors() as doors:
        ann, bob = await doors.key_for("ann"), await doors.key_for("bob", role="admin")
        carl, eve = await doors.key_for("carl"), await doors.key_for("eve", workspace="other", role="admin")
        run = (await a_run_of(doors, ann))["taskId"]
        own = (await doors.client.get(f"{RUNS}/{run}/story", headers=ann)).json()
        assert not any("reason" in entry["detail"] for entry in own["entries"])
        assert doors.noted == []
        seen = (await doors.client.get(f"{RUNS}/{run}/story", headers=bob)).json()
        assert any("reason" in entry["detail"] for entry in seen["entries"])
        [noted] = doors.noted
        assert (noted.actor, noted.action, noted.resource) == ("user:bob", "run.look", run)
        for stranger in (carl, eve):
            answer = await doors.client.get(f"{RUNS}/{run}/story", headers=stranger)
            assert_problem(answer, 404, "not_found", "there is no such run")


@pytest.mark.spec("http/cancel")
async def test_an_administrator_stops_anybodys_run_of_the_workspace_and_is_on_record_for_it() -> None:
    async with open_doors() as doors:
        ann, bob = await doors.key_for("ann"), await doors.key_for("bob", role="admin")
        carl, eve = await doors.key_for("carl"), await doors.key_for("eve", workspace="other", role="admin")
        run = (await doors.post(a_body(), headers=ann)).json()["taskId"]
        await doors.gateway.next()
        for stranger in (carl, eve):
            answer = await doors.client.post(f"{RUNS}/{run}/cancel", json={}, headers=stranger)
            assert_problem(answer, 404, "not_found", "there is no such run")
        assert (await doors.client.post(f"{RUNS}/{run}/cancel", json={}, headers=bob)).status_code == 202
        found = await doors.client.get(f"/api/v1/audit?run={run}&action=run.cancel", headers=bob)
        assert [row["actor"] for row in found.json()["decisions"]] == ["user:bob"]


@pytest.mark.spec("http/run-story")
async def test_a_value_in_state_is_never_told() -> None:
    async with open_doors() as doors:
        accepted = (await doors.post(a_body())).json()
        run = await doors.gateway.next()
        run.say("state.updated", scope="conversation", key="mood", value="very secret")
        await doors.answered(run, "hello")
        answer = await doors.client.get(f"{RUNS}/{accepted['taskId']}/story")
        [change] = [entry for entry in answer.json()["entries"] if entry["kind"] == "state"]
        assert (change["detail"]["scope"], change["detail"]["key"]) == ("conversation", "mood")
        assert "very secret" not in answer.text


@pytest.mark.spec("http/audit")
async def test_the_audit_trail_is_searched_by_administrators_of_its_workspace() -> None:
    async with open_doors() as doors:
        ann, bob = await doors.key_for("ann"), await doors.key_for("bob", role="admin")
        run = (await a_run_of(doors, ann))["taskId"]
        await a_run_of(doors, ann, "again")
        found = (await doors.client.get(f"/api/v1/audit?run={run}", headers=bob)).json()["decisions"]
        assert found
        assert {row["taskId"] for row in found} == {run}
        page = (await doors.client.get("/api/v1/audit?limit=1", headers=bob)).json()
        rest = (await doors.client.get(f"/api/v1/audit?before={page['next']}", headers=bob)).json()["decisions"]
        assert page["decisions"][0]["number"] > rest[0]["number"]
        none = (await doors.client.get("/api/v1/audit?since=2999-01-01T00:00:00Z", headers=bob)).json()
        assert none == {"decisions": [], "next": None}
        assert_problem(await doors.client.get("/api/v1/audit", headers=ann), 403, "unauthorized", "this needs")
        for wrong in ("since=yesterday", "since=2026-01-01", "before=-1"):
            answer = await doors.client.get(f"/api/v1/audit?{wrong}", headers=bob)
            assert_problem(answer, 422, "invalid_argument", wrong.partition("=")[0])


@pytest.mark.spec("http/usage")
@pytest.mark.spec("http/cost-unknown")
async def test_usage_counts_runs_by_span_of_time() -> None:
    async with open_doors() as doors:
        ann, bob = await doors.key_for("ann"), await doors.key_for("bob", role="admin")
        await a_run_of(doors, ann)
        own = (await doors.client.get("/api/v1/usage", headers=ann)).json()
        assert [(span["runs"], span["completed"]) for span in own["runs"]] == [(1, 1)]
        assert own["runs"][0]["medianSeconds"] >= 0
        whole = {name: value for name, value in own["runs"][0].items() if name != "start"}
        assert own["total"] == whole
        nobody = (await doors.client.get("/api/v1/usage", headers=bob)).json()["total"]
        assert nobody == {"runs": 0, "completed": 0, "failed": 0, "cancelled": 0}
        assert (await doors.client.get("/api/v1/usage", headers=bob)).json()["runs"] == []
        everybody = (await doors.client.get("/api/v1/usage?scope=workspace&span=month", headers=bob)).json()
        assert everybody["runs"]
        assert everybody["people"] == []
        await doors.house.store.write([used("u1", user_id="ann", workspace_id="default", started_at=time.time())])
        everybody = (await doors.client.get("/api/v1/usage?scope=workspace", headers=bob)).json()
        assert everybody["people"] == [{"userId": "ann", "modelCalls": 1, "totalTokens": 15, "cost": 0.25}]
        unpriced = used("u2", user_id="cem", workspace_id="default", started_at=time.time(), cost=None, model_id="m2")
        await doors.house.store.write([unpriced])
        everybody = (await doors.client.get("/api/v1/usage?scope=workspace", headers=bob)).json()
        assert [(one["cost"], one.get("unpricedCalls")) for one in everybody["people"]] == [(0.25, None), (None, 1)]
        assert [(one["cost"], one.get("unpricedCalls")) for one in everybody["usage"]] == [(0.25, None), (None, 1)]
        assert "people" not in own
        assert_problem(await doors.client.get("/api/v1/usage?span=year"), 401, "unauthenticated", "this host knows")
        wrong = await doors.client.get("/api/v1/usage?span=year", headers=ann)
        assert_problem(wrong, 422, "invalid_argument", "span must be")


def test_the_median_and_the_slowest_twentieth_are_of_completed_runs() -> None:
    laps = [Lap(10.0, 10.0, 10.0 + seconds, "completed") for seconds in range(1, 21)]
    [pace, later] = paces([*laps, Lap(11.0, 11.0, 500.0, "failed"), Lap(70.0, None, None, "queued")], 60)
    assert (pace.runs, pace.completed, pace.failed, pace.median, pace.slowest_twentieth) == (21, 20, 1, 10.0, 19.0)
    assert (later.start, later.runs, later.median) == (60.0, 1, None)


@pytest.mark.spec("http/allowance")
async def test_a_rehearsal_tells_the_program_what_a_run_would() -> None:
    async with open_doors() as doors:
        ann = await doors.key_for("ann", role="admin")
        told = (await doors.client.get("/api/v1/agents/one/allowance?text=hi", headers=ann)).json()["context"]
        await doors.post(a_body(text="hi"), headers=ann)
        given = (await doors.gateway.next()).context
        assert [told[name] for name in ("actor", "resources")] == [given[name] for name in ("actor", "resources")]
        assert told["input"]["text"] == "hi"
        assert told["context"]["available_apis"] == given["context"]["available_apis"]
        assert not {"config", "state", "run_id"} & set(told)


@pytest.mark.spec("http/allowance")
async def test_what_an_agent_would_get_is_told_before_anything_is_started() -> None:
    async with open_doors() as doors:
        ann = await doors.key_for("ann")
        boss = await doors.key_for("bob", role="admin")
        path = "/api/v1/agents/one/allowance"
        told = (await doors.client.get(path, headers=boss)).json()
        assert (told["agentId"], told["event"], told["answers"]) == ("one", "message.received", True)
        run = (await a_run_of(doors, ann))["taskId"]
        assert told["grant"] == (await doors.client.get(f"{RUNS}/{run}/story", headers=ann)).json()["grant"]
        other = (await doors.client.get(f"{path}?event=schedule.triggered", headers=boss)).json()
        assert other["answers"] is False
        assert other["context"]["trigger"]["type"] == "schedule.triggered"
        assert other["context"]["actor"] == {"actor_type": "system", "actor_id": "api"}
        assert_problem(await doors.client.get(path, headers=ann), 403, "unauthorized", "this needs")
        long = await doors.client.get(path, params={"text": "x" * 2001}, headers=boss)
        assert_problem(long, 422, "invalid_argument", "text may have at most 2000 characters")
        unknown = await doors.client.get("/api/v1/agents/nobody/allowance", headers=boss)
        assert_problem(unknown, 404, "not_found", "there is no agent")
