"""A small tool loop: asks its first configured model, calls what it asks for, asks again, streams the answer."""

import json
from typing import Any

from paddock_sdk import AgentRunner, completed, delta, message, serve


class Toolsmith(AgentRunner):
    permissions = {"models": ["invoke", "stream"], "tools": ["detail", "call"]}  # noqa: RUF012 - as authors write it

    async def run(self, ctx, api):
        model = ctx.config["model"]
        tools = [
            {"name": tool.tool_name, "description": tool.description or "", "parameters": tool.parameters or {}}
            for tool in ctx.resources.tools
        ]
        messages: list[Any] = [{"role": "user", "content": ctx.text}]
        asked = (await api.models.invoke(model, messages, tools)).message
        if asked.tool_calls:
            messages.append(asked)
            for call in asked.tool_calls:
                said = await api.tools.call(call.function.name, json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps(said.result)})
        words = []
        async for piece in api.models.stream(model, messages):
            said = piece.chunk.text if piece.chunk else ""
            words.append(said)
            yield delta(said)
        yield message("".join(words))
        yield completed()


serve(Toolsmith())
