"""Texts that describe a run to a harness: `agent-context.json` for programs, CONTEXT.md for people and models. Pure.

No secret is in either: no config, no header's value, no token. CONTEXT.md says what stays the same from turn to turn,
so that a model's cache stays warm, and nothing a stranger wrote: it may be used as a system prompt.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from paddock_sdk.projection.servers import OWN, Server
from paddock_sdk.protocol.run_context import AgentRunContext

SCHEMA: Final = "paddock.external_harness_context"
VERSION: Final = 1
MASK: Final = "***"
SECTIONS: Final = ("event", "actor", "subject", "input", "delivery", "resources", "context", "state", "runtime")
"""Of the run's context; `config` and `adapter` stay out: the one may hold secrets, the other is not to be relied on."""
MAX_LINE = 300


def context_value(ctx: AgentRunContext, skills: Mapping[str, str]) -> dict[str, Any]:
    """The structured context. `skills` says where each projected skill lies, relative to the working directory."""
    whole = ctx.to_wire()
    said: dict[str, Any] = {"schema": SCHEMA, "schema_version": VERSION, "run_id": ctx.run_id}
    for name in ("trigger", "conversation", *SECTIONS):
        said[name] = whole.get(name)
    said["resources"] = _without_secrets(said["resources"], skills)
    return said


def _without_secrets(resources: Mapping[str, Any], skills: Mapping[str, str]) -> dict[str, Any]:
    servers = [
        {**server, "headers": dict.fromkeys(server.get("headers") or {}, MASK)} for server in resources.get("mcp") or ()
    ]
    told = [
        {**skill, "path": skills.get(str(skill["skill_name"]))}
        for skill in resources.get("skills") or ()
        if skill["skill_name"] in skills
    ]
    return {**resources, "mcp": servers, "skills": told}


def context_page(ctx: AgentRunContext, servers: Sequence[Server], skills: Mapping[str, str], json_name: str) -> str:
    """The page for people and models."""
    parts = ["# What this session is", "", *_about(ctx, json_name), *_instructions(ctx), *_facts(ctx)]
    return "\n".join([*parts, *_means(ctx, servers), *_skills(ctx, skills)]).rstrip() + "\n"


def _about(ctx: AgentRunContext, json_name: str) -> list[str]:
    """Host and place, nothing that changes from turn to turn."""
    return [
        "You answer in a conversation that the host Paddock keeps. It shows what you say to the people there and keeps",
        "the history, the files and the permissions. What you may use in this conversation is listed below; nothing",
        "else of the host is yours. Files you write in this working directory stay on this machine.",
        "",
        f"- Answers are shown on: {line(ctx.delivery.surface)}",
        f"- Facts of the present turn (event, people, attachments) as JSON: `{json_name}`",
        "",
    ]


def _instructions(ctx: AgentRunContext) -> list[str]:
    said = ctx.config.get("instructions")
    return ["## Instructions", "", said.strip(), ""] if isinstance(said, str) and said.strip() else []


def _facts(ctx: AgentRunContext) -> list[str]:
    given: Any = ctx.config.get("context")
    items = cast("list[Any]", given if isinstance(given, list) else [])
    told = [f"- {line(item.get('description'))}: {line(item.get('value'), 2000)}" for item in items if _is_item(item)]
    return ["## To be known", "", *told, ""] if told else []


def _is_item(item: object) -> bool:
    return isinstance(item, Mapping) and "value" in item


def _means(ctx: AgentRunContext, servers: Sequence[Server]) -> list[str]:
    told: list[str] = []
    if any(server.own for server in servers):
        told.append(f"- MCP server `{OWN}`, the host's own, with the tools it lists; it is there while the turn lasts")
        told += [f"  - `{line(tool.tool_name)}`: {line(tool.description)}" for tool in _callable(ctx)]
    told += [f"- MCP server `{server.name}`" for server in servers if not server.own]
    return ["## What you may use", "", *told, ""] if told else []


def _callable(ctx: AgentRunContext) -> list[Any]:
    return [tool for tool in ctx.resources.tools if "call" in tool.operations]


def _skills(ctx: AgentRunContext, skills: Mapping[str, str]) -> list[str]:
    told = [
        f"- `{skill.skill_name}`: {line(skill.description or skill.display_name)} (`{skills[skill.skill_name]}`)"
        for skill in ctx.resources.skills
        if skill.skill_name in skills
    ]
    return ["## Skills", "", *told, ""] if told else []


def line(value: object, most: int = MAX_LINE) -> str:
    """Any text as one line that cannot begin a heading or a fence of its own."""
    text = re.sub(r"\s+", " ", "".join(char if char.isprintable() else " " for char in str(value or ""))).strip()
    text = text.replace("`", "'")
    return text if len(text) <= most else f"{text[: most - 1]}…"


def pointer(context_name: str, *, imports: bool) -> str:
    """A line for the file a harness reads by itself."""
    how = f"@{context_name}" if imports else f"Read `{context_name}` in this directory first."
    return f"{how}\n"


def already_told(context_name: str) -> str:
    """Introduction for a harness that already has the page another way."""
    return f"`{context_name}` in this directory says what this session is; you have been told it already.\n"
