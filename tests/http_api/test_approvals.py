"""`/api/v1/approvals` and `/explain`: the user's word, over HTTP, and nobody else's."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest

from host.platforms import EDITING_AGENTS, EDITOR, MemoryPlatform
from host.scripted import AtRunner
from http_api.doors import Doors, a_body, assert_problem, open_doors
from paddock.ports import Caller

pytestmark = pytest.mark.anyio

EDIT = {"action": "message.edit", "target": {"message_id": "m-1"}, "payload": {"text": "better"}}
LIST = "/api/v1/approvals"


@asynccontextmanager
async def asked(platform: MemoryPlatform) -> AsyncGenerator[tuple[Doors, AtRunner, str, dict[str, str]]]:
    """Ann's agent has asked to edit a message."""
    async with open_doors(platform=platform, agents=EDITING_AGENTS) as doors:
        doors.gateway.permissions = EDITOR
        ann = await doors.key_for("ann")
        await doors.post(a_body(), headers=ann)
        run = await doors.gateway.next()
        params = {"run_id": run.run_id, **EDIT}
        answer = await doors.house.calls(Caller("test/one", "c1"), "platform.request_action", params, 100)
        yield doors, run, f"{LIST}/{answer['approval_id']}", ann


async def shown(doors: Doors, who: dict[str, str], **query: str) -> list[dict[str, Any]]:
    return (await doors.client.get(LIST, params=query, headers=who)).json()["approvals"]


@pytest.mark.spec("gate/platform-actions")
@pytest.mark.spec("http/approvals")
async def test_a_user_sees_what_waits_and_grants_it_once() -> None:
    platform = MemoryPlatform()
    async with asked(platform) as (doors, run, path, ann):
        (waiting,) = await shown(doors, ann)
        assert waiting["taskId"] == run.run_id
        assert {key: waiting[key] for key in (*EDIT, "status", "outcome", "agentId")} == {
            **EDIT,
            "status": "pending",
            "outcome": "pending",
            "agentId": "one",
        }
        for _ in range(2):
            granted = await doors.client.post(path, json={"decision": "grant"}, headers=ann)
            assert granted.status_code == 200
            assert (granted.json()["status"], granted.json()["outcome"]) == ("granted", "done")
        assert len(platform.done) == 1
        refused = await doors.client.post(path, json={"decision": "deny"}, headers=ann)
        assert_problem(refused, 409, "conflict", "this was granted already")
        assert [await shown(doors, ann, status=status) != [] for status in ("granted", "pending")] == [True, False]


async def test_somebody_else_sees_nothing_and_finds_nothing() -> None:
    platform = MemoryPlatform()
    async with asked(platform) as (doors, _run, path, _ann):
        for who in (
            await doors.key_for("bob"),
            await doors.key_for("ann", "other"),
            await doors.key_for("eve", role="admin"),
        ):
            assert await shown(doors, who) == []
            answer = await doors.client.post(path, json={"decision": "grant"}, headers=who)
            assert_problem(answer, 404, "not_found", "there is no such approval")
        assert platform.done == []


@pytest.mark.spec("http/explain")
async def test_an_administrator_has_any_run_of_the_workspace_explained_and_nobody_else_does() -> None:
    async with asked(MemoryPlatform()) as (doors, run, _path, _ann):
        where = f"/api/v1/agent/runs/{run.run_id}/explain?action=state.get"
        for who in (
            await doors.key_for("bob"),
            await doors.key_for("ann", "other"),
            await doors.key_for("eve", "other", role="admin"),
        ):
            assert_problem(await doors.client.get(where, headers=who), 404, "not_found", "there is no such run")
        eve = await doors.key_for("eve", role="admin")
        told = await doors.client.get(where, headers=eve)
        assert (told.status_code, told.json()["taskId"]) == (200, run.run_id)
        elsewhere = f"{where}&threadId={uuid4()}"
        wrong = await doors.client.get(elsewhere, headers=eve)
        assert_problem(wrong, 404, "not_found", "there is no such run")


@pytest.mark.parametrize("body", [{}, {"decision": "maybe"}, {"decision": 1}])
async def test_a_decision_is_grant_or_deny(body: dict[str, Any]) -> None:
    async with asked(MemoryPlatform()) as (doors, _run, path, ann):
        answer = await doors.client.post(path, json=body, headers=ann)
        assert_problem(answer, 422, "invalid_argument", "decision must be grant or deny")
        odd = await doors.client.get(LIST, params={"status": "odd"}, headers=ann)
        assert_problem(odd, 422, "invalid_argument", "status must be pending")


async def test_what_failed_says_why() -> None:
    platform = MemoryPlatform()
    platform.problem = OSError("inner")
    async with asked(platform) as (doors, _run, path, ann):
        answer = (await doors.client.post(path, json={"decision": "grant"}, headers=ann)).json()
        assert (answer["status"], answer["outcome"]) == ("granted", "failed")
        assert "inner" not in answer["detail"]


@pytest.mark.spec("gate/why")
@pytest.mark.spec("http/explain")
async def test_a_run_is_explained_from_what_was_stored_with_it() -> None:
    async with asked(MemoryPlatform()) as (doors, run, _path, ann):
        where = f"/api/v1/agent/runs/{run.run_id}/explain"
        story = (await doors.client.get(where, params={"action": "platform.request_action"}, headers=ann)).json()
        assert (story["granted"], story["allowed"], story["layer"]) == (True, True, "")
        assert story["decisions"] == {"allowed": 1}
        doors.gateway.permissions = {}
        run.say("run.completed")
        await doors.ended(run.run_id)
        asked_later = {"action": "platform.request_action", "resource": "message.edit"}
        later = (await doors.client.get(where, params=asked_later, headers=ann)).json()
        assert (later["granted"], later["allowed"], later["layer"]) == (True, False, "run")
        none = (await doors.client.get(where, params={"action": "history.page"}, headers=ann)).json()
        assert (none["granted"], none["layer"]) == (False, "manifest")
        assert_problem(await doors.client.get(where, headers=ann), 422, "invalid_argument", "say which host call")
        odd = await doors.client.get(where, params={"action": "history.pag"}, headers=ann)
        assert_problem(odd, 422, "invalid_argument", "there is no host call 'history.pag'; did you mean history.page?")
