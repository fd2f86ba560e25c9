"""A run that was granted models and tools uses them through the gate, and what it used is on record with its end."""

import uuid
from typing import Any

import pytest

from host.scripted import ANN, ScriptedGateway, small_house
from paddock.ports import Caller

pytestmark = pytest.mark.anyio

HERE = Caller("test/one", "c1")
ASKS = {"models": ["invoke", "stream"], "tools": ["detail", "call"]}


async def test_a_run_sees_what_it_was_granted_and_uses_it() -> None:
    async with small_house(gateway=ScriptedGateway(ASKS)) as house:
        await house.say(thread=str(uuid.uuid4()))
        run = await house.gateway.next()
        resources = run.context["resources"]
        assert [model["model_id"] for model in resources["models"]] == ["demo"]
        assert [tool["tool_name"] for tool in resources["tools"]] == ["calculate", "calendar_read", "current_time"]
        asked: dict[str, Any] = {"run_id": run.run_id, "model_id": "demo"}
        asked["messages"] = [{"role": "user", "content": 'calculate "6*7"'}]
        asked["tools"] = [
            {"name": tool["tool_name"], "description": tool["description"], "parameters": tool["parameters"]}
            for tool in resources["tools"]
        ]
        answer = await house.calls(HERE, "models.invoke", asked, 100)
        wanted = answer["message"]["tool_calls"][0]["function"]
        assert wanted == {"name": "calculate", "arguments": '{"expression": "6*7"}'}
        using = {"run_id": run.run_id, "tool_name": "calculate", "parameters": {"expression": "6*7"}}
        assert await house.calls(HERE, "tools.call", using, 100) == {"result": 42}
        stream: Any = await house.calls(HERE, "models.stream", asked | {"tools": None}, 100)
        assert len([chunk async for chunk in stream]) > 1
        run.say("run.completed")
        await house.story(await house.view.find(ANN, run.run_id))
        assert [row.operation for row in await house.store.model_usage(run.run_id)] == ["invoke", "stream"]
        usage = await house.view.usage(await house.view.find(ANN, run.run_id))
        assert usage is not None
        assert (usage["modelCalls"], usage["totalTokens"] > 0) == (2, True)
        assert [row.status for row in await house.store.tool_calls(run.run_id)] == ["completed"]
