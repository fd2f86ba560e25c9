"""A runner written against LangBot's published SDK, with nothing of Paddock in it. The first word says what to do."""

import asyncio
import os
import re
from pathlib import Path

from langbot_plugin.api.definition.components.runner.runner import Runner
from langbot_plugin.api.entities.builtin.provider.message import Message, MessageChunk
from langbot_plugin.api.entities.builtin.resource.tool import LLMTool
from langbot_plugin.api.entities.builtin.runner import AgentAPIException, RunnerContext, RunnerResult


def said(ctx, text):
    return RunnerResult.message_completed(ctx.run_id, Message(role="assistant", content=text))


class TalkerRunner(Runner):
    async def run(self, ctx: RunnerContext):
        word, _, rest = ctx.input.to_text().partition(" ")
        do = getattr(self, f"do_{word}", None) or self.do_echo
        async for result in do(ctx, rest):
            yield result

    async def do_echo(self, ctx, _):
        text, so_far = ctx.input.to_text(), ""
        for piece in re.findall(r"\S+\s*", text):
            so_far += piece
            chunk = MessageChunk(role="assistant", content=piece, all_content=so_far)
            yield RunnerResult.message_delta(ctx.run_id, chunk)
        usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
        yield RunnerResult.run_completed(ctx.run_id, Message(role="assistant", content=text), usage=usage)

    async def do_model(self, ctx, rest):
        model = ctx.resources.models[0].model_id
        messages = [Message(role="user", content=rest)]
        tokens = await ctx.api.count_tokens(model, messages)
        so_far = ""
        async for chunk in ctx.api.invoke_llm_stream(model, messages):
            so_far += chunk.content or ""
            yield RunnerResult.message_delta(ctx.run_id, MessageChunk(role="assistant", content=chunk.content))
        once = await ctx.api.invoke_llm(model, messages)
        yield said(ctx, f"{so_far} / {once.content} / {tokens > 0}")

    async def do_functions(self, ctx, rest):
        """One round with tools offered, as its local agent does it."""
        model = ctx.resources.models[0].model_id
        tool = ctx.resources.tools[0]
        offered = LLMTool(
            name=tool.tool_name,
            human_desc="",
            description=tool.description or "",
            parameters=tool.parameters or {},
            func=lambda: None,
        )
        answer = await ctx.api.invoke_llm(model, [Message(role="user", content=rest)], funcs=[offered])
        yield said(ctx, ", ".join(call.function.name for call in answer.tool_calls or []) or answer.content)

    async def do_tool(self, ctx, rest):
        detail = await ctx.api.get_tool_detail("calculate")
        answer = await ctx.api.call_tool("calculate", {"expression": rest})
        yield said(ctx, f"{detail['name']} says {answer}")

    async def do_count(self, ctx, _):
        value = (await ctx.api.state_get("conversation", "turns"))["value"] or 0
        await ctx.api.state_set("conversation", "turns", value + 1)
        keys = (await ctx.api.state_list("conversation"))["keys"]
        yield RunnerResult.state_updated(ctx.run_id, "external.session_id", "s-1", scope="conversation")
        yield said(ctx, f"turn {value + 1}, keys {keys}, told {sorted(ctx.state.conversation)}")

    async def do_keep(self, ctx, rest):
        await ctx.api.set_plugin_storage("note", rest.encode())
        kept = await ctx.api.get_plugin_storage("note")
        keys = await ctx.api.get_plugin_storage_keys()
        await ctx.api.delete_plugin_storage("note")
        try:
            await ctx.api.get_plugin_storage("note")
        except AgentAPIException as error:
            yield said(ctx, f"{kept.decode()} {keys} {error.error.code}")

    async def do_history(self, ctx, rest):
        page = await ctx.api.history_page(limit=10)
        found = await ctx.api.history_search(rest)
        event = await ctx.api.event_get(ctx.event.event_id)
        yield said(ctx, f"{[item.content for item in page.items]} {len(found.items)} {event.event_type}")

    async def do_knowledge(self, ctx, rest):
        found = await ctx.api.retrieve_knowledge(ctx.resources.knowledge_bases[0].kb_id, rest, top_k=1)
        yield said(ctx, found[0]["content"][0]["text"])

    async def do_files(self, ctx, _):
        told = [
            f"{one.type}:{len(one.image_base64 or one.file_base64 or '')}"
            for one in ctx.input.contents
            if one.type != "text"
        ]
        yield said(ctx, f"{[one.name for one in ctx.input.attachments]} {told}")

    async def do_settings(self, ctx, _):
        prompt = await ctx.api.get_prompt()
        yield said(
            ctx, f"{self.plugin.get_config()['greeting']} {ctx.config['tone']} {ctx.config.get('api-key')} {prompt}"
        )

    async def do_refused(self, ctx, _):
        told = []
        for ask in (
            lambda: ctx.api.call_platform_api("bot", "send_message", {}),
            lambda: ctx.api.state_get("conversation", ""),
            lambda: ctx.api.history_page(conversation_id="of-somebody-else"),
            lambda: ctx.api._api._api.plugin_runtime_handler.call_action(_Named("get_bots"), {"run_id": ctx.run_id}),
            lambda: ctx.api._api._api.plugin_runtime_handler.call_action(_Named("history_page"), {"run_id": "another"}),
            lambda: ctx.api._api._api.plugin_runtime_handler.call_action(_Named("history_page"), {}),
        ):
            try:
                await ask()
                told.append("allowed")
            except AgentAPIException as error:
                told.append(error.error.code)
        yield said(ctx, " ".join(told))

    async def do_reply(self, ctx, rest):
        await ctx.reply(rest)
        for result in ():
            yield result

    async def do_type(self, ctx, rest):
        async with ctx.api.reply_stream() as reply:
            so_far = ""
            for piece in re.findall(r"\S+\s*", rest):
                so_far += piece
                await reply.update(so_far)
        for result in ():
            yield result

    async def do_long(self, ctx, rest):
        yield said(ctx, "长" * int(rest))

    async def do_flood(self, ctx, rest):
        for number in range(int(rest)):
            yield RunnerResult.message_delta(ctx.run_id, MessageChunk(role="assistant", content=f"{number} "))

    async def do_wait(self, ctx, rest):
        yield RunnerResult.message_delta(ctx.run_id, MessageChunk(role="assistant", content="waiting"))
        try:
            await asyncio.sleep(3600)
        finally:
            Path(rest).write_text("let go")

    async def do_stubborn(self, ctx, _):
        yield RunnerResult.message_delta(ctx.run_id, MessageChunk(role="assistant", content=f"pid {os.getpid()}"))
        while True:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                continue

    async def do_ask(self, ctx, _):
        yield RunnerResult.interaction_requested(
            ctx.run_id, {"interaction_id": "i-1", "kind": "confirmation", "title": "Sure?", "fallback_text": "Say yes."}
        )

    async def do_boom(self, ctx, _):
        raise ValueError("it broke")
        yield

    async def do_exit(self, ctx, _):
        yield RunnerResult.message_delta(ctx.run_id, MessageChunk(role="assistant", content="bye"))
        os._exit(3)


class _Named:
    """An action by a name that the SDK has no constant for."""

    def __init__(self, value):
        self.value = value
