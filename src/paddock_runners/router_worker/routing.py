"""The first stage: what the input is about and which tools it needs. And what the run's mode lets it choose from."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paddock_runners.toolkit.replies import Asked, Reply, speak
from paddock_runners.toolkit.speakers import is_group, speaker_of, spoken_by
from paddock_runners.toolkit.transcript import shortened
from paddock_runners.toolkit.values import listing, mapping
from paddock_sdk import HostApi, RunContext

TOOL = "route"
INSTRUCTIONS = (
    "You are the router of an assistant. Read the message and call the tool `route` once: say in a few words what the "
    "user wants, and name the tools that are needed to answer, none if words are enough. Do not answer the message."
)
MAX_INTENT_CHARS = 120
MAX_EARLIER_CHARS = 500


@dataclass(frozen=True, slots=True)
class Mode:
    """Tools and context to choose from: the agent's, or those of the job it runs for."""

    name: str
    tools: tuple[str, ...] | None
    """None: all that were granted."""
    context: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Route:
    intent: str
    tools: tuple[str, ...]


def mode_of(ctx: RunContext) -> Mode:
    """`chat` takes tools and context from the agent; `automation` from the job, which can only take away tools."""
    params = mapping(ctx.adapter.extra.get("params")) if ctx.adapter else {}
    name = mapping(params.get("forwardedProps")).get("runtime_mode")
    if name != "automation":
        return Mode("chat", None, tuple(mapping(one) for one in listing(ctx.config.get("context"))))
    job = mapping(ctx.event.data.get("runtime_config"))
    chosen = tuple(str(one) for one in listing(job["enabled_tools"])) if "enabled_tools" in job else None
    return Mode("automation", chosen, tuple(mapping(one) for one in listing(job.get("context"))))


def narrowed(ctx: RunContext, tools: Sequence[str], context: Sequence[Mapping[str, Any]]) -> RunContext:
    """The run with these tools and this context only."""
    kept = [tool for tool in ctx.resources.tools if tool.tool_name in tools]
    resources = ctx.resources.model_copy(update={"tools": kept})
    config = {**ctx.config, "context": [dict(one) for one in context]}
    return ctx.model_copy(update={"resources": resources, "config": config})


def enabled(ctx: RunContext, mode: Mode) -> list[str]:
    granted = [tool.tool_name for tool in ctx.resources.tools]
    return granted if mode.tools is None else [name for name in granted if name in mode.tools]


async def route(ctx: RunContext, api: HostApi, asked: Asked, tools: Sequence[str], usage: Reply) -> Route:
    """Ask the router; a model that does not route leaves every tool to the worker. Raises HostCallError."""
    described = {tool.tool_name: tool.description or "" for tool in ctx.resources.tools if tool.tool_name in tools}
    told = "\n".join(f"- {name}: {text}" for name, text in described.items()) or "- none"
    messages = [
        {"role": "system", "content": f"{INSTRUCTIONS}\n\nTools:\n{told}"},
        {"role": "user", "content": _message(ctx)},
    ]
    question = Asked(asked.model_id, [_offer(tools)], asked.extra_args, asked.streams)
    async for _ in speak(api, question, messages, usage):
        pass
    return _read(usage, tools, ctx.text)


def _message(ctx: RunContext) -> str:
    """The message, after what it may refer to."""
    group = is_group(ctx)
    text = spoken_by(speaker_of(ctx.actor, group=group), ctx.text) or ctx.event.event_type
    said = [
        f"{speaker_of(item, group=group) or item.role}: {shortened(item.content or '', MAX_EARLIER_CHARS)}"
        for item in ctx.recent_tail
        if item.item_type == "message"
    ]
    return "\n".join(["Said before:", *said, "", "The message:", text]) if said else text


def _offer(tools: Sequence[str]) -> dict[str, Any]:
    items: dict[str, Any] = {"type": "string", "enum": list(tools)} if tools else {"type": "string"}
    properties = {"intent": {"type": "string"}, "tools": {"type": "array", "items": items}}
    parameters = {"type": "object", "properties": properties, "required": ["intent", "tools"]}
    return {"name": TOOL, "description": "Say what the user wants and which tools it needs.", "parameters": parameters}


def _read(reply: Reply, tools: Sequence[str], text: str) -> Route:
    call = next((one for one in reply.calls if one.name == TOOL), None)
    try:
        said = mapping(json.loads(call.arguments)) if call is not None else {}
    except ValueError:
        said = {}
    intent = said.get("intent")
    words = intent if isinstance(intent, str) and intent.strip() else text
    chosen = tuple(name for name in tools if name in listing(said["tools"])) if "tools" in said else tuple(tools)
    return Route(" ".join(words.split())[:MAX_INTENT_CHARS], chosen)
