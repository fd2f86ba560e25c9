"""What of a native request reaches the runner, as what, and what of it becomes part of the conversation."""

import json
from typing import Any

import pytest

from http_api.doors import a_body, assert_problem, open_doors
from http_api.test_validation_table import EXAMPLES

pytestmark = pytest.mark.anyio
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
OTHERS: list[dict[str, Any]] = [
    {"id": "2", "role": "assistant", "content": "earlier", "toolCalls": [CALL]},
    {"id": "3", "role": "system", "content": "be kind"},
    {"id": "4", "role": "tool", "content": "42", "toolCallId": "c1"},
    {"id": "5", "role": "developer", "content": "be brief"},
    {"id": "6", "role": "reasoning", "content": "hmm"},
    {"id": "7", "role": "activity", "activityType": "plan", "content": {"steps": []}},
]
TOOL = json.loads(EXAMPLES)["tool"]
"""As it is published."""
CLIENT_TIME = {"device_timezone": "Asia/Tokyo", "client_now_iso": "2026-03-16T09:12:33+09:00", "client_epoch_ms": 1}
FRONT_END = """
default_agent: one
agents:
  one: {runner: "plugin:test/one/default", frontend_tools: true}
  two: {runner: "plugin:test/two/default"}
"""


@pytest.mark.spec("http/untrusted")
async def test_all_seven_roles_are_taken_and_all_but_the_users_words_reach_the_runner_as_untrusted_parameters() -> None:
    async with open_doors() as doors:
        user = {"id": "1", "role": "user", "content": "hi", "name": "Ann", "encryptedValue": "e"}
        more: dict[str, Any] = {
            "state": {"k": 1},
            "context": [{"description": "d", "value": "v"}],
            "parentRunId": "p",
            "tools": [TOOL],
        }
        props = {"runtime_mode": "chat", "client_time": CLIENT_TIME}
        body = a_body(messages=[user, *OTHERS], forwardedProps=props, **more)
        assert (await doors.post(body)).status_code == 202
        context = (await doors.gateway.next()).context
        assert context["input"]["text"] == "hi"
        params = json.loads(json.dumps(context["adapter"]["extra"]["params"]))
        assert params == {**more, "messages": OTHERS, "name": "Ann", "encryptedValue": "e", "forwardedProps": props}


@pytest.mark.spec("http/untrusted")
async def test_only_the_users_message_becomes_part_of_the_conversation() -> None:
    async with open_doors() as doors:
        body = a_body(messages=[{"id": "1", "role": "user", "content": "hi"}, *OTHERS])
        await doors.post(body)
        run = await doors.gateway.next()
        items = await doors.house.store.transcript(body["threadId"])
        assert [(item.role, item.content) for item in items] == [("user", "hi")]
        await doors.answered(run, "hello")
        items = await doors.house.store.transcript(body["threadId"])
        assert [(item.role, item.content) for item in items] == [("assistant", "hello"), ("user", "hi")]


@pytest.mark.spec("http/frontend-tools")
async def test_tools_of_the_client_are_shown_only_to_an_agent_that_asks_for_them_and_always_replayed() -> None:
    async with open_doors(agents=FRONT_END) as doors:
        for agent, shown in (("one", ["get_weather"]), ("two", [])):
            answer = await doors.post(a_body(run=agent, tools=[TOOL]), params={"agent": agent})
            run = await doors.gateway.next()
            tools = run.context["resources"]["tools"]
            assert [(tool["tool_name"], tool["tool_type"]) for tool in tools] == [(name, "frontend") for name in shown]
            await doors.answered(run, "ok")
            events = await doors.client.get(f"/api/v1/agent/runs/{answer.json()['taskId']}/events")
            first = json.loads(events.text.split("data: ", 1)[1].split("\n", 1)[0])
            assert first["input"]["tools"] == [TOOL]


async def test_automation_is_refused_on_a_thread_of_no_job() -> None:
    async with open_doors() as doors:
        answer = await doors.post(a_body(forwardedProps={"runtime_mode": "automation"}))
        assert_problem(answer, 422, "invalid_argument", "invalid RunAgentInput.forwardedProps")


@pytest.mark.spec("http/forwarded-props-named")
async def test_what_forwarded_props_must_not_have_is_named_beside_the_sentence() -> None:
    async with open_doors() as doors:
        props = {"runtime_mode": "chat", "enabledTools": ["add"], "x" * 100: 1}
        answer = await doors.post(a_body(forwardedProps=props))
        assert_problem(answer, 422, "invalid_argument", "invalid RunAgentInput.forwardedProps")
        reason = answer.json()["reason"]
        assert reason.startswith("not known in forwardedProps: enabledTools, xxx")
        assert "config.enabledTools" in reason
        assert len(reason) < 400
        mode = await doors.post(a_body(forwardedProps={"runtime_mode": "auto"}))
        assert mode.json()["reason"] == "runtime_mode must be chat or automation"
        job = await doors.post(a_body(forwardedProps={"runtime_mode": "automation"}))
        assert job.json()["reason"] == "runtime_mode automation is for the thread of an automation job of yours"
