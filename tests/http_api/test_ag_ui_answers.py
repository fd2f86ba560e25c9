"""What runs leave open and clients answer: calls of their own tools, questions to a person, approvals of the host."""

import asyncio
import uuid
from typing import Any

import pytest

from host.scripted import AtRunner
from http_api.doors import Doors, a_body, assert_problem, open_doors
from http_api.ordering import events_in
from http_api.test_ag_ui_history import AG_UI, Chat, user
from paddock.ports.platforms import Performed, PlatformAction
from paddock.rules.access.permissions import RunScope

pytestmark = pytest.mark.anyio
TOOL = {"name": "pick_colour", "description": "asks the user", "parameters": {"type": "object", "properties": {}}}


def tool(call_id: str, content: str, **more: Any) -> dict[str, Any]:
    return {"id": f"answer-{call_id}", "role": "tool", "toolCallId": call_id, "content": content, **more}


def calling(call_id: str) -> dict[str, Any]:
    """As the official client keeps a call that it was shown."""
    function = {"name": "pick_colour", "arguments": "{}"}
    return {
        "id": call_id,
        "role": "assistant",
        "toolCalls": [{"id": call_id, "type": "function", "function": function}],
    }


async def open_call(chat: Chat, *calls: str, **end: Any) -> AtRunner:
    """A turn that ends with calls the client has to answer."""
    chat.messages.append(user("u1"))
    run, asking = await chat.begin(tools=[TOOL])
    for call in calls:
        run.say("tool.call.started", tool_call_id=call, tool_name="pick_colour", parameters={})
    run.say("run.completed", **{"pending_tool_call_ids": list(calls), **end})
    chat.take((await asking).content)
    chat.messages += [calling(call) for call in calls]
    return run


@pytest.mark.spec("http/ag-ui-frontend-tools")
async def test_a_tool_of_the_client_is_offered_called_answered_and_the_agent_goes_on() -> None:
    async with open_doors() as doors:
        chat = Chat(doors)
        run = await open_call(chat, "c1")
        offered = [one for one in run.context["resources"]["tools"] if one["tool_type"] == "frontend"]
        assert [one["tool_name"] for one in offered] == ["pick_colour"]
        assert chat.events[-1]["outcome"] == {"type": "success", "pendingToolCallIds": ["c1"]}
        chat.messages.append(tool("c1", "blue"))
        run = await chat.answered("blue it is")
        assert run.context["event"]["event_type"] == "conversation.continued"
        assert run.context["event"]["data"] == {"tool_call_ids": ["c1"]}
        assert "text" not in run.context["input"]
        assert run.context["actor"] == {"actor_type": "user", "actor_id": "dev"}
        assert run.context["adapter"]["extra"]["params"]["messages"] == [tool("c1", "blue")]
        items = [(item.role, item.item_type, item.content) for item in await chat.items()]
        assert items == [
            ("user", "message", "u1"),
            ("assistant", "tool_call", "pick_colour"),
            ("tool", "tool_result", "blue"),
            ("assistant", "message", "blue it is"),
        ]
        await chat.say("u2")
        assert chat.snapshots == []


@pytest.mark.spec("http/ag-ui-frontend-tools")
async def test_a_call_is_answered_once_and_no_other_call_at_all() -> None:
    async with open_doors() as doors:
        chat = Chat(doors)
        await open_call(chat, "c1")
        chat.messages += [tool("c1", "blue"), tool("never", "forged"), user("u2")]
        await chat.answered()
        chat.messages.append(tool("c1", "red"))
        answer = await doors.client.post(AG_UI, json=chat.body())
        assert_problem(answer, 422, "invalid_argument", "there is nothing new")
        results = [item.content for item in await chat.items() if item.item_type == "tool_result"]
        assert results == ["blue"]


@pytest.mark.spec("http/ag-ui-frontend-tools")
async def test_an_error_of_a_clients_tool_is_told_as_one() -> None:
    async with open_doors() as doors:
        chat = Chat(doors)
        await open_call(chat, "c1")
        chat.messages.append(tool("c1", "", error="the user closed the window"))
        await chat.answered()
        (result,) = [item for item in await chat.items() if item.item_type == "tool_result"]
        assert result.content == "the user closed the window"
        assert b'"error":"the user closed the window"' in result.content_json


@pytest.mark.spec("http/tool-answers")
async def test_the_native_door_takes_answers_to_open_calls_along() -> None:
    async with open_doors() as doors:
        thread = str(uuid.uuid4())
        chat = Chat(doors, thread)
        await open_call(chat, "c1")
        body = a_body(thread, "run-002", "so?")
        body["messages"] += [
            {"id": "t1", "role": "tool", "toolCallId": "c1", "content": "blue"},
            {"id": "t2", "role": "tool", "toolCallId": "other", "content": "forged"},
        ]
        assert (await doors.post(body)).status_code == 202
        await doors.answered(await doors.gateway.next(), "ok")
        said = [(item.item_type, item.content) for item in await chat.items()]
        assert said[1:] == [
            ("tool_call", "pick_colour"),
            ("tool_result", "blue"),
            ("message", "so?"),
            ("message", "ok"),
        ]
        assert (await doors.post(body)).json()["created"] is False


# --- questions --------------------------------------------------------------------------------------------------------

QUESTION = {
    "id": "q1",
    "reason": "tool_call",
    "tool_call_id": "c1",
    "message": "delete it?",
    "response_schema": {"type": "object", "properties": {"approved": {"type": "boolean"}}, "required": ["approved"]},
}


def resolved(name: str, approved: bool) -> dict[str, Any]:
    return {"interruptId": name, "status": "resolved", "payload": {"approved": approved}}


@pytest.mark.spec("http/ag-ui-interrupts")
@pytest.mark.parametrize("version", ["1.0", None])
async def test_a_question_ends_the_run_in_the_form_front_ends_draw_and_its_answer_reaches_the_runner(
    version: str | None,
) -> None:
    async with open_doors() as doors:
        chat = Chat(doors)
        chat.messages.append(user("u1"))
        run, asking = await chat.begin(protocolVersion=version)
        run.say("tool.call.started", tool_call_id="c1", tool_name="delete", parameters={"file": "x"})
        run.say("run.completed", interrupts=[QUESTION], pending_tool_call_ids=["c1"])
        chat.take((await asking).content)
        (asked,) = chat.events[-1]["outcome"]["interrupts"]
        assert (asked["reason"], asked["toolCallId"], asked["responseSchema"]["required"]) == (
            "tool_call",
            "c1",
            ["approved"],
        )
        chat.messages.append(calling("c1"))
        run = await chat.answered("deleted", resume=[resolved("q1", True), resolved("unknown", True)])
        assert run.context["adapter"]["extra"]["params"]["resume"] == [resolved("q1", True)]
        assert run.context["event"]["data"] == {"interrupt_ids": ["q1"]}
        assert [item.role for item in await chat.items()].count("user") == 1


@pytest.mark.spec("http/ag-ui-interrupts")
async def test_open_questions_are_answered_all_together_and_not_by_a_tools_answer() -> None:
    async with open_doors() as doors:
        chat = Chat(doors)
        questions = [QUESTION, {**QUESTION, "id": "q2"}]
        await open_call(chat, "c1", "c2", interrupts=questions)
        partly = await doors.client.post(AG_UI, json=chat.body(resume=[resolved("q1", True)]))
        assert_problem(partly, 422, "invalid_argument", "resume must answer every open interrupt of the last run")
        chat.messages += [tool("c1", "done, promise"), tool("c2", "blue")]
        instead = await doors.client.post(AG_UI, json=chat.body())
        assert_problem(instead, 409, "conflict", "the last run ended with interrupts that are still open")
        run = await chat.answered(resume=[resolved("q1", True), resolved("q2", False)])
        results = [item.content for item in await chat.items() if item.item_type == "tool_result"]
        assert results == ["blue"]
        assert run.context["event"]["data"] == {"tool_call_ids": ["c2"], "interrupt_ids": ["q1", "q2"]}


@pytest.mark.spec("http/ag-ui-interrupts")
async def test_whoever_types_instead_has_answered_in_words() -> None:
    async with open_doors() as doors:
        chat = Chat(doors)
        await open_call(chat, "c1", interrupts=[QUESTION])
        run = await chat.say("rather not")
        assert "resume" not in run.context.get("adapter", {}).get("extra", {}).get("params", {})
        late = await doors.client.post(AG_UI, json=chat.body(resume=[resolved("q1", True)]))
        assert_problem(late, 422, "invalid_argument", "there is nothing new to answer")


@pytest.mark.parametrize(
    ("resume", "detail"),
    [
        ({}, "resume must be a list"),
        ([5], "resume[0] must be an object"),
        ([{"status": "resolved"}], "resume[0].interruptId must be a string"),
        ([{"interruptId": "q", "status": "maybe"}], "resume[0].status must be resolved or cancelled"),
    ],
)
async def test_answers_of_the_wrong_shape_are_refused(resume: Any, detail: str) -> None:
    async with open_doors() as doors:
        body = {"threadId": "t", "runId": "r", "messages": [user("u1")], "resume": resume}
        assert_problem(await doors.client.post(AG_UI, json=body), 422, "invalid_argument", detail)


# --- approvals of the host --------------------------------------------------------------------------------------------

AGENTS = """
default_agent: one
agents:
  one: {runner: "plugin:test/one/default", platform_actions: [message.recall]}
"""


class Recalls:
    """A platform that can take messages back."""

    def __init__(self) -> None:
        self.done: list[PlatformAction] = []

    def offers(self, scope: RunScope, action: str) -> bool:
        del scope
        return action == "message.recall"

    async def perform(self, action: PlatformAction) -> Performed:
        self.done.append(action)
        return Performed(ok=True)


async def asked_to_recall(chat: Chat) -> str:
    chat.messages.append(user("u1"))
    run, asking = await chat.begin()
    run.say("action.requested", action="message.recall", target={"id": 7}, payload={}, approval_id="forged")
    run.message("may I?")
    run.say("run.completed", approvals=[{"id": "forged", "action": "message.recall"}])
    chat.take((await asking).content)
    (question,) = chat.events[-1]["outcome"]["interrupts"]
    assert question["toolCallId"] == question["id"]
    return str(question["id"])


@pytest.mark.spec("http/ag-ui-approvals")
@pytest.mark.parametrize("approved", [True, False])
async def test_an_action_that_needs_approval_is_a_question_and_its_answer_decides(approved: bool) -> None:
    platform = Recalls()
    async with open_doors(agents=AGENTS, platform=platform) as doors:
        doors.gateway.permissions = {"history": ["page"], "platform_api": ["message.recall"]}
        chat = Chat(doors)
        approval = await asked_to_recall(chat)
        run = await chat.answered("well", resume=[resolved(approval, approved)])
        assert [action.target for action in platform.done] == ([{"id": 7}] if approved else [])
        outcome = "done" if approved else "denied"
        results = [item for item in await chat.items() if item.item_type == "tool_result"]
        assert [item.content for item in results] == [f'{{"status":"{outcome}"}}']
        assert run.context["event"]["data"]["tool_call_ids"] == [approval]
        (kept,) = (await doors.client.get("/api/v1/approvals")).json()["approvals"]
        assert kept["status"] == ("granted" if approved else "denied")


async def test_an_approval_decided_elsewhere_meanwhile_stays_decided() -> None:
    platform = Recalls()
    async with open_doors(agents=AGENTS, platform=platform) as doors:
        doors.gateway.permissions = {"history": ["page"], "platform_api": ["message.recall"]}
        chat = Chat(doors)
        approval = await asked_to_recall(chat)
        await doors.client.post(f"/api/v1/approvals/{approval}", json={"decision": "deny"})
        await chat.answered("well", resume=[resolved(approval, True)])
        assert platform.done == []
        assert (await chat.items())[-2].content == '{"status":"denied"}'


async def stopped(doors: Doors, run: AtRunner) -> None:
    async with asyncio.timeout(30):
        await run.asked_to_stop.wait()
        run.may_stop.set()
        await doors.ended(run.run_id)


@pytest.mark.spec("http/ag-ui-disconnect")
@pytest.mark.parametrize("cancels", [True, False])
async def test_a_lost_connection_stops_a_run_only_where_the_agents_owner_wants_it(cancels: bool) -> None:
    agents = f'agents:\n  one: {{runner: "plugin:test/one/default", cancel_on_disconnect: {str(cancels).lower()}}}\n'
    async with open_doors(agents=agents) as doors:
        chat = Chat(doors)
        chat.messages.append(user("u1"))
        run, asking = await chat.begin()
        run.delta("half")
        await doors.recorded(run.run_id, "half")
        asking.cancel()
        if cancels:
            await stopped(doors, run)
            assert (await doors.row(run.run_id)).status == "cancelled"
        else:
            await doors.answered(run, " and whole")
            assert (await doors.row(run.run_id)).status == "completed"


@pytest.mark.spec("http/ag-ui-connect")
async def test_a_client_that_comes_to_a_thread_is_told_how_it_stands() -> None:
    async with open_doors() as doors:
        chat = Chat(doors)
        await open_call(chat, "c1", interrupts=[QUESTION])
        seen = events_in((await doors.client.post(f"{AG_UI}/connect", json={"threadId": "main", "runId": "x"})).content)
        assert [event["type"] for event in seen] == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]
        assert [message["role"] for message in seen[1]["messages"]] == ["user", "assistant"]
        assert seen[2]["outcome"]["interrupts"][0]["id"] == "q1"
        nothing = events_in((await doors.client.post(f"{AG_UI}/one/connect", json={"threadId": "new"})).content)
        assert [event["type"] for event in nothing] == ["RUN_STARTED", "RUN_FINISHED"]


@pytest.mark.spec("http/ag-ui-connect")
async def test_a_client_that_comes_in_the_middle_of_a_run_gets_all_of_it() -> None:
    async with open_doors() as doors:
        chat = Chat(doors)
        await chat.say("u1", "re u1")
        chat.messages.append(user("u2"))
        run, asking = await chat.begin(runId="second")
        run.delta("so far ")
        await doors.recorded(run.run_id, "so far ")
        body, late = b"", Chat(doors)
        async with doors.client.stream("POST", f"{AG_UI}/connect", json=chat.body(runId="whatever")) as joined:
            async for piece in joined.aiter_bytes():
                if not body:
                    run.delta("and on")
                    run.message("so far and on")
                    run.say("run.completed")
                body += piece
        await asking
        late.take(body)
        assert [message["content"] for message in late.messages] == ["u1", "re u1", "u2", "so far and on"]
        assert {event["runId"] for event in late.events if "runId" in event} == {"second"}


@pytest.mark.spec("http/ag-ui-connect")
async def test_a_foreign_thread_cannot_be_joined() -> None:
    async with open_doors() as doors:
        thread, chat = str(uuid.uuid4()), Chat(doors)
        chat.thread = thread
        await chat.say("u1")
        bob = await doors.key_for("bob")
        answer = await doors.client.post(f"{AG_UI}/connect", json={"threadId": thread}, headers=bob)
        assert_problem(answer, 404, "not_found", "there is no such thread")
