"""A message said differently, an answer asked for again, an opinion, and the whole conversation to take away."""

import uuid
from typing import Any

import pytest

from http_api.doors import Doors, a_body, assert_problem, open_doors

pytestmark = pytest.mark.anyio


async def a_talk(doors: Doors, *turns: tuple[str, str]) -> tuple[str, list[str]]:
    """A conversation of these turns, and the ids of their runs."""
    thread, runs = str(uuid.uuid4()), list[str]()
    for number, (asked, answer) in enumerate(turns):
        accepted = await doors.post(a_body(thread, f"run-{number}", asked))
        await doors.answered(await doors.gateway.next(), answer)
        runs.append(accepted.json()["taskId"])
    return thread, runs


async def told(doors: Doors, thread: str) -> list[str]:
    found = (await doors.client.get("/api/v1/agent/history", params={"threadId": thread})).json()
    return [message["content"] for message in found["messages"]]


async def branch(doors: Doors, thread: str, how: str, **body: Any) -> Any:
    return await doors.client.post(f"/api/v1/agent/sessions/{thread}/{how}", json=body)


@pytest.mark.spec("http/edit")
async def test_an_edited_message_moves_the_head_and_rewrites_nothing() -> None:
    async with open_doors() as doors:
        thread, runs = await a_talk(doors, ("one", "1"), ("two", "2"), ("three", "3"))
        before = await doors.house.store.read(thread)
        answer = await branch(doors, thread, "edit", itemId=f"{runs[1]}.0", content="zwei", runId="r")
        assert answer.status_code == 202, answer.text
        run = await doors.gateway.next()
        assert run.context["input"]["text"] == "zwei"
        await doors.answered(run, "II")
        assert await told(doors, thread) == ["one", "1", "zwei", "II"]
        rows = await doors.house.store.transcript(thread)
        assert [row.content for row in rows] == ["II", "zwei", "1", "one"]
        facts = await doors.house.store.read(thread)
        assert list(facts[: len(before)]) == list(before)
        again = await branch(doors, thread, "edit", itemId=f"{runs[1]}.0", content="zwei", runId="r")
        assert again.json() == answer.json()
        gone = await branch(doors, thread, "edit", itemId=f"{runs[2]}.0", content="x")
        assert_problem(gone, 404, "not_found", "there is no such message")


@pytest.mark.spec("http/edit")
async def test_an_answer_is_asked_for_again_by_another_agent() -> None:
    async with open_doors() as doors:
        thread, runs = await a_talk(doors, ("one", "1"), ("two", "2"))
        answer = await branch(doors, thread, "regenerate", itemId=f"{runs[1]}.1", agentId="two")
        assert answer.status_code == 202, answer.text
        run = await doors.gateway.next()
        assert (run.context["input"]["text"], run.context["conversation"]["bot_id"]) == ("two", "two")
        await doors.answered(run, "zwei")
        assert await told(doors, thread) == ["one", "1", "two", "zwei"]
        third = await branch(doors, thread, "regenerate", itemId=f"{answer.json()['taskId']}.0")
        await doors.answered(await doors.gateway.next(), "deux")
        assert third.status_code == 202
        assert await told(doors, thread) == ["one", "1", "two", "deux"]


@pytest.mark.spec("http/edit")
async def test_nothing_is_moved_while_something_is_being_answered() -> None:
    async with open_doors() as doors:
        thread, runs = await a_talk(doors, ("one", "1"))
        await doors.post(a_body(thread, "live", "two"))
        live = await doors.gateway.next()
        refused = await branch(doors, thread, "regenerate", itemId=f"{runs[0]}.0")
        assert_problem(refused, 409, "conflict", "something is still being answered")
        await doors.answered(live, "2")
        assert await told(doors, thread) == ["one", "1", "two", "2"]


@pytest.mark.spec("http/edit")
async def test_messages_of_others_and_of_nobody_look_the_same() -> None:
    async with open_doors() as doors:
        thread, runs = await a_talk(doors, ("one", "1"))
        other, _ = await a_talk(doors, ("x", "y"))
        ann = await doors.key_for("ann")
        path = f"/api/v1/agent/sessions/{thread}"
        body = {"itemId": f"{runs[0]}.0", "content": "x"}
        assert_problem(
            await doors.client.post(f"{path}/edit", json=body, headers=ann), 404, "not_found", "there is no such thread"
        )
        bob = {"Authorization": "Bearer local-token-of-the-test"}
        for item in (f"{runs[0]}.0", "nobody.0", "x"):
            wrong = f"/api/v1/agent/sessions/{other}/edit"
            answer = await doors.client.post(wrong, json={"itemId": item, "content": "x"}, headers=bob)
            assert_problem(answer, 404, "not_found", "there is no such message")
        for bad in ({"content": "x"}, {"itemId": "x"}, {"itemId": "x", "content": ""}, {"itemId": 5, "content": "x"}):
            answer = await doors.client.post(f"{path}/edit", json=bad, headers=bob)
            assert answer.status_code == 422


@pytest.mark.spec("http/feedback")
async def test_an_answer_gets_one_opinion_and_it_is_exported() -> None:
    async with open_doors() as doors:
        thread, runs = await a_talk(doors, ("one", "1"))
        path = f"/api/v1/agent/sessions/{thread}/messages"
        for body in ({"rating": "up"}, {"rating": "down", "comment": "wrong"}):
            assert (await doors.client.put(f"{path}/{runs[0]}.1/feedback", json=body)).status_code == 204
        exported = (await doors.client.get(f"/api/v1/agent/sessions/{thread}/export")).json()
        assert exported["messages"][1]["feedback"] == {"rating": "down", "comment": "wrong"}
        history = (await doors.client.get(f"/api/v1/agent/history?threadId={thread}")).json()["messages"]
        assert [one.get("feedback", {}).get("rating") for one in history] == [None, "down"]
        assert {one["taskId"] for one in history} == set(runs)
        assert (await doors.client.put(f"{path}/{runs[0]}.1/feedback", json={"rating": None})).status_code == 204
        exported = (await doors.client.get(f"/api/v1/agent/sessions/{thread}/export")).json()
        assert "feedback" not in exported["messages"][1]
        for item in (f"{runs[0]}.0", f"{runs[0]}.9", "x"):
            refused = await doors.client.put(f"{path}/{item}/feedback", json={"rating": "up"})
            assert_problem(refused, 404, "not_found", "there is no such answer")
        for bad in ({}, {"rating": "5"}, {"rating": "up", "comment": "x" * 2001}):
            assert (await doors.client.put(f"{path}/{runs[0]}.1/feedback", json=bad)).status_code == 422
        rated = [row for row in await doors.house.store.audit() if row.action == "answer.rate"]
        assert [row.reason for row in rated] == ["taken back", "down", "up"]


@pytest.mark.spec("http/export")
async def test_a_conversation_is_exported_whole_as_json_and_as_markdown() -> None:
    async with open_doors() as doors:
        thread, _ = await a_talk(doors, *((f"q{number}", f"a{number}") for number in range(3)))
        path = f"/api/v1/agent/sessions/{thread}"
        await doors.client.patch(path, json={"title": "My\ntalk"})
        exported = await doors.client.get(f"{path}/export")
        assert exported.headers["content-disposition"] == f'attachment; filename="conversation-{thread}.json"'
        assert [one["content"] for one in exported.json()["messages"]] == ["q0", "a0", "q1", "a1", "q2", "a2"]
        page = (await doors.client.get(f"{path}/export", params={"format": "markdown"})).text
        assert page.startswith("# My talk\n\n## You · ")
        assert page.endswith("\n\na2\n")
        refused = await doors.client.get(f"{path}/export", params={"format": "pdf"})
        assert_problem(refused, 422, "invalid_argument", "format must be json or markdown")
        foreign = await doors.client.get(f"/api/v1/agent/sessions/{uuid.uuid4()}/export")
        assert_problem(foreign, 404, "not_found", "there is no such thread")


@pytest.mark.spec("http/export")
async def test_half_an_answer_is_exported_as_one() -> None:
    async with open_doors() as doors:
        thread, _ = await a_talk(doors, ("q0", "a0"))
        await doors.post(a_body(thread, "cut", "q1"))
        run = await doors.gateway.next()
        run.delta("half an ")
        await doors.recorded(run.run_id, "half an ")
        run.say("run.failed", code="runner.error", error="no more")
        await doors.ended(run.run_id)
        path = f"/api/v1/agent/sessions/{thread}/export"
        exported = (await doors.client.get(path)).json()["messages"]
        assert [(one["content"], one.get("partial")) for one in exported][1::2] == [("a0", None), ("half an ", True)]
        page = (await doors.client.get(path, params={"format": "markdown"})).text
        assert page.endswith("\n\nhalf an \n\n*(unfinished)*\n")
