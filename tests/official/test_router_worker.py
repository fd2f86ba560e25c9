"""The router and worker against the pretend host: two steps, and tools by mode."""

import json
from typing import Any

import pytest

from official.speaking import ADD, adding, resources
from paddock_runners.local_agent.approvals import KEY
from paddock_runners.router_worker import RouterWorker
from paddock_sdk.protocol.results import StepFinished, StepStarted, ToolCallCompleted
from paddock_sdk.testing import RunResults, pretend_host

pytestmark = pytest.mark.anyio
PAY = {**ADD, "tool_name": "pay", "description": "Pay somebody."}


def routing(asked: list[Any], *tools: str) -> Any:
    """A model that routes to these tools when it is asked to, and answers with what it was offered."""

    def stream(params: Any) -> list[Any]:
        asked.append(params)
        offered = [tool.name for tool in params.tools or []]
        if offered != ["route"]:
            return [{"chunk": {"content": f"offered: {', '.join(offered)}"}}]
        arguments = json.dumps({"intent": "sums", "tools": list(tools)})
        return [{"chunk": {"content": "", "tool_calls": [{"id": "r", "function": {"name": "route", "arguments": arguments}}]}}]  # fmt: skip  # noqa: E501

    return stream


async def routed(asked: list[Any], *tools: str, **context: Any) -> RunResults:
    calls = {"models.stream": routing(asked, *tools), "tools.call": adding}
    async with pretend_host(RouterWorker(), calls=calls) as host:
        config = {"own_tools": [], "context": [{"description": "shop", "value": "open"}]}
        return await host.run("add 2 and 3", resources=resources(ADD, PAY), config=config, **context)


async def test_the_two_stages_are_steps_and_the_worker_has_only_the_routers_tools() -> None:
    asked: list[Any] = []
    results = await routed(asked, "add", "made_up")
    assert results.types == [
        "step.started",
        "step.finished",
        "step.started",
        "message.delta",
        "message.completed",
        "action.requested",
        "step.finished",
        "run.completed",
    ]
    steps = [one.data.step_name for one in results if isinstance(one, StepStarted | StepFinished)]
    assert steps == ["router", "router", "worker", "worker"]
    assert results.text == "offered: add"
    hints = next(one.data.ui_hints for one in results if one.type == "message.completed")
    assert (hints["title"], hints["label"]) == ("sums", "chat")
    assert "- shop: open" in asked[1].messages[0].text


async def test_automation_takes_tools_and_context_from_the_job() -> None:
    asked: list[Any] = []
    job = {"enabled_tools": ["pay"], "context": [{"description": "job", "value": "nightly"}]}
    event = {
        "event_id": "e",
        "event_type": "schedule.triggered",
        "source": "scheduler",
        "data": {"runtime_config": job},
    }
    adapter = {"extra": {"params": {"forwardedProps": {"runtime_mode": "automation"}}}}
    results = await routed(asked, "add", "pay", event=event, adapter=adapter)
    assert results.text == "offered: pay"
    assert "- job: nightly" in asked[1].messages[0].text
    assert "shop" not in asked[1].messages[0].text


async def test_a_model_that_does_not_route_leaves_all_tools_to_the_worker() -> None:
    def stream(params: Any) -> list[Any]:
        return [{"chunk": {"content": ", ".join(tool.name for tool in params.tools or [])}}]

    async with pretend_host(RouterWorker(), calls={"models.stream": stream}) as host:
        results = await host.run("hi", resources=resources(ADD, PAY), config={"own_tools": []})
    assert results.text == "add, pay"


async def test_a_call_that_was_approved_is_made_whatever_the_router_makes_of_the_yes() -> None:
    waiting = [{"id": "c1", "name": "pay", "arguments": '{"a": 2, "b": 3}'}]
    calls = {"models.stream": routing([]), "tools.call": adding}
    async with pretend_host(RouterWorker(), calls=calls, state={"conversation": {KEY: waiting}}) as host:
        results = await host.run("yes", resources=resources(ADD, PAY), config={"own_tools": [], "approve": ["pay"]})
    (made,) = (one for one in results if isinstance(one, ToolCallCompleted))
    assert (made.data.error, made.data.result) == (None, 5)


async def test_a_word_that_is_no_answer_to_its_question_is_not_routed() -> None:
    asked: list[Any] = []
    waiting = [{"id": "c1", "name": "pay", "arguments": '{"a": 2, "b": 3}'}]
    calls = {"models.stream": routing(asked), "tools.call": adding}
    async with pretend_host(RouterWorker(), calls=calls, state={"conversation": {KEY: waiting}}) as host:
        results = await host.run("yes but less", resources=resources(ADD, PAY), config={"approve": ["pay"]})
    assert (asked, results.types) == ([], ["message.completed", "run.completed"])
    assert '- pay {"a": 2, "b": 3}' in results.text


async def test_the_router_knows_what_was_said_before() -> None:
    asked: list[Any] = []
    calls = {"models.stream": routing(asked, "add"), "tools.call": adding}
    history = [("user", "add 2 and 3"), ("assistant", "5")]
    async with pretend_host(RouterWorker(), calls=calls, history=history) as host:
        await host.run("and 4?", resources=resources(ADD, PAY), config={"own_tools": []})
    told = asked[0].messages[-1].text
    assert told == "Said before:\nuser: add 2 and 3\nassistant: 5\n\nThe message:\nand 4?"
