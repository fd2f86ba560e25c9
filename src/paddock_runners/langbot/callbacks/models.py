"""Models, tools and knowledge, asked for by a LangBot runner."""

from collections.abc import AsyncIterator, Mapping
from typing import Any, cast

from paddock_runners.langbot.callbacks.asking import Asking, Data, filled, messages, number, text, wires
from paddock_runners.langbot.callbacks.replies import say_message
from paddock_runners.langbot.context import REPLY_TOOL, reply_tool
from paddock_runners.langbot.refusal import RefusedError, refusal_of
from paddock_runners.toolkit.tokens import tokens_in, tokens_of_all
from paddock_runners.toolkit.values import listing, mapping
from paddock_sdk import HostCallError


async def invoke(run: Asking, data: Data) -> Data:
    said = await run.api.models.invoke(**_question(data))
    return {"message": said.message.to_wire(), "usage": said.usage.to_wire() if said.usage else None}


async def stream(run: Asking, data: Data) -> AsyncIterator[Data]:
    try:
        async for piece in run.api.models.stream(**_question(data)):
            if told := piece.to_wire():
                yield told
    except HostCallError as error:
        raise refusal_of(error) from error


def _question(data: Data) -> dict[str, Any]:
    tools = [_tool(mapping(one)) for one in listing(data.get("funcs"))]
    return {
        "model_id": text(data, "llm_model_uuid"),
        "messages": messages(data),
        "tools": tools or None,
        "extra_args": filled(data, "extra_args"),
    }


def _tool(said: Data) -> Data:
    kept = ("name", "human_desc", "description", "parameters")
    return {key: said[key] for key in kept if said.get(key) is not None}


async def count_tokens(run: Asking, data: Data) -> Data:
    """An estimate on the high side, made here: it is asked for dozens of times a turn."""
    if text(data, "llm_model_uuid") not in {model.model_id for model in run.ctx.resources.models}:
        raise RefusedError("unauthorized", "count_tokens is not granted to this run")
    tools = sum(tokens_in(str(one)) for one in listing(data.get("funcs")))
    return {"tokens": tokens_of_all(messages(data)) + tools}


async def rerank(run: Asking, data: Data) -> Data:
    documents = [str(one) for one in listing(data.get("documents"))]
    model, query = text(data, "rerank_model_uuid"), text(data, "query")
    return {"results": wires(await run.api.models.rerank(model, query, documents, number(data, "top_k")))}


async def tool_detail(run: Asking, data: Data) -> Data:
    name = text(data, "tool_name")
    if name == REPLY_TOOL:
        ours = reply_tool()
        return {"tool": {"name": name, "description": ours["description"], "parameters": ours["parameters"]}}
    tool = await run.api.tools.get_detail(name)
    return {"tool": {"name": tool.tool_name, "description": tool.description or "", "parameters": tool.parameters}}


async def call_tool(run: Asking, data: Data) -> Data:
    name, parameters = text(data, "tool_name"), mapping(data.get("parameters"))
    if name == REPLY_TOOL:
        return await say_message(run, str(parameters.get("text") or ""))
    said = await run.api.tools.call(name, parameters)
    answer: object = said.result
    result = mapping(cast("object", answer)) if isinstance(answer, Mapping) else {"result": answer}
    if said.artifact is not None:
        result["artifact"] = said.artifact.to_wire()
    return {"result": result}


async def retrieve(run: Asking, data: Data) -> Data:
    base, query = text(data, "kb_id"), text(data, "query_text")
    found = await run.api.knowledge.retrieve(base, query, number(data, "top_k") or 5, filled(data, "filters"))
    return {"results": wires(found)}
