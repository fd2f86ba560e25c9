"""Build the `AgentRunContext` of the protocol that a runner gets when a run starts. Pure.

The part that is the same for every run of an agent is computed once; history is never part of it.
"""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Literal, cast

import msgspec

from paddock.rules.access.permissions import Allowance, Grant
from paddock.rules.agents.resources import (
    NOTHING_OFFERED,
    Offered,
    OfferedFile,
    base_resources,
    file_resources,
    frontend_tools,
    model_resources,
    tool_resources,
)
from paddock.rules.log.events import SUMMARY_CHARS, raw_ref_of
from paddock.rules.log.places import Place, cursor_of
from paddock.rules.rows.rows import View
from paddock.rules.run.events import MESSAGE, RunEvent, actor_of, is_large, subject_of
from paddock.rules.schedule.time_zones import LAST_RESORT, device_zone
from paddock.rules.session.routing import SIGNS, without_mention
from paddock.rules.values import Value, nothing, replace
from paddock_sdk.protocol.manifest import AgentRunnerManifest

HOST_NAME = "paddock"
TriggerSource = Literal["platform", "webui", "api", "scheduler", "system", "host_adapter"]

SUMMARY_KEYS = 50
_canonical = msgspec.json.Encoder(order="deterministic").encode


class AgentExtras(Value, frozen=True):
    """Settings of an agent besides policy and config that its runs see."""

    skills: tuple[Mapping[str, Any], ...] = ()
    mcp: tuple[Mapping[str, Any], ...] = ()
    frontend_tools: bool | None = None
    """Whether the client's own tools are shown; None leaves it to the door."""
    locale: str | None = None
    time_zone: str | None = None
    """What counts when nobody says otherwise."""
    cancel_on_disconnect: bool = False
    """Whether a run is stopped when the client that asked for it, by the AG-UI door, goes away."""
    isolation: str | None = None
    """How far its runs are kept apart at least."""
    working_directory: str | None = None
    """Where its runs work; None: in one of their conversation."""
    public_only: bool = False
    """Whether addresses in its settings came over the API and must lead to the public internet."""
    readable: tuple[str, ...] = ()
    """What its runs may read from L1 up, besides what they need to run at all."""


NO_EXTRAS = AgentExtras()


class ResolvedAgent(Value, frozen=True):
    """Everything that the runs of one agent share until its configuration changes."""

    allowance: Allowance
    config: Mapping[str, Any]
    resources: Mapping[str, Any]
    available_apis: Mapping[str, bool]
    static_refs: Mapping[str, Any]
    extras: AgentExtras = NO_EXTRAS
    read_only_tools: frozenset[str] = frozenset()
    """Of the granted tools, those that change nothing."""
    checked_for: AgentRunnerManifest | None = None
    """Whose form the settings of an agent of the API were checked against."""
    granted: msgspec.Raw = msgspec.Raw(b"{}")
    """The summary of every grant that comes of it, as JSON: it goes on record with each run and is written out once."""


class RunInput(Value, frozen=True):
    """The event a run answers."""

    text: str
    message: Mapping[str, Any]
    params: Mapping[str, Any]
    source: TriggerSource
    seq: int
    """The number of the input in the session's log."""
    at: float
    earlier_history: bool
    event: RunEvent | None = None
    """None for a plain message of the session's user."""
    attachments: Sequence[Mapping[str, Any]] = ()
    """Artifact references: what came along is never inline."""
    door: str = "native"
    locale: str | None = None
    time_zone: str | None = None
    """As the user set it; the zone of their device, when they send one, comes first."""
    begun_seq: int = 0
    """The number of the fact that handed it to its agent: where the conversation stood when its run began."""
    waited: bool = False
    """Whether it waited in line before that, while the conversation went on."""
    newest_event: int | None = None
    newest_item: int | None = None
    """The newest that the run can read, where that need not be its own input."""


class StateShown(Value, frozen=True):
    """The state that rides along in a context, by scope."""

    values: Mapping[str, Mapping[str, Any]] = nothing
    left_out: Mapping[str, Sequence[str]] = nothing
    """Keys whose values do not fit: they are read by `state.get`."""


NO_STATE = StateShown()


def resolved_agent(
    allowance: Allowance,
    config: Mapping[str, Any],
    *,
    wants_static_refs: bool,
    there: Offered = NOTHING_OFFERED,
    files: Iterable[OfferedFile] = (),
    extras: AgentExtras = NO_EXTRAS,
) -> ResolvedAgent:
    apis = _available_apis(allowance.actions)
    resources: dict[str, Any] = {
        "models": model_resources(there, allowance.models),
        "tools": tool_resources(there, allowance.tools),
        "knowledge_bases": base_resources(there, allowance.knowledge_bases),
        "files": file_resources(files),
        "storage": {
            "plugin_storage": "plugin" in allowance.storage_areas and apis["storage"],
            "workspace_storage": "workspace" in allowance.storage_areas and apis["storage"],
            "binding_storage": "binding" in allowance.storage_areas and apis["storage"],
        },
        "platform_capabilities": {"actions": sorted(allowance.platform_actions)} if allowance.platform_actions else {},
        "skills": list(extras.skills),
        "mcp": list(extras.mcp),
    }
    refs = _static_refs(allowance, config, resources) if wants_static_refs else {}
    harmless = frozenset(tool.name for tool in there.tools if tool.read_only and tool.name in allowance.tools)
    return ResolvedAgent(allowance, config, resources, apis, refs, extras, harmless, granted=_granted(allowance))


def with_tools(part: ResolvedAgent, names: Iterable[str]) -> ResolvedAgent:
    """Reduce an agent to these of its tools: a caller may ask for less, never for more."""
    wanted = frozenset(names)
    allowed = replace(part.allowance, tools={name: can for name, can in part.allowance.tools.items() if name in wanted})
    tools = [tool for tool in part.resources["tools"] if tool["tool_name"] in wanted]
    resources = {**part.resources, "tools": tools}
    refs = _static_refs(allowed, part.config, resources) if part.static_refs else {}
    return replace(part, allowance=allowed, resources=resources, static_refs=refs, granted=_granted(allowed))


def _granted(allowance: Allowance) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(allowance.summary()))


def _static_refs(allowance: Allowance, config: Mapping[str, Any], resources: Mapping[str, Any]) -> dict[str, Any]:
    """By what a runtime can tell that nothing changed since it last looked. Headers may hold keys and do not count."""
    policies = {
        "actions": sorted(allowance.actions),
        "state_scopes": sorted(allowance.state_scopes),
        "storage_areas": sorted(allowance.storage_areas),
        "history_scope": allowance.history_scope,
        "platform_actions": sorted(allowance.platform_actions),
    }
    servers = [{key: value for key, value in server.items() if key != "headers"} for server in resources["mcp"]]
    refs = {
        "policies": static_ref("policies", policies),
        "tool_schemas": static_ref("tool_schemas", resources["tools"]),
        "resources": static_ref("resources", {**resources, "mcp": servers}),
    }
    if "instructions" in config:
        refs["instructions"] = static_ref("instructions", config["instructions"])
    return refs


def static_ref(name: str, value: object) -> dict[str, str]:
    """A name for something that rarely changes, with a hash that is stable while it does not."""
    digest = sha256(_canonical(value)).hexdigest()
    return {"ref": f"{HOST_NAME}:{name}", "version": digest[:12], "hash": f"sha256:{digest}"}


def _available_apis(actions: frozenset[str]) -> dict[str, bool]:
    return {
        "history_page": "history.page" in actions,
        "history_search": "history.search" in actions,
        "event_get": "events.get" in actions,
        "event_page": "events.page" in actions,
        "artifact_metadata": "artifacts.metadata" in actions,
        "artifact_read": "artifacts.read_range" in actions,
        "state": "state.get" in actions,
        "storage": "storage.get" in actions,
    }


def session_key(grant: Grant) -> str:
    """Opaque and stable per workspace, agent, runner, conversation and thread: what a runtime keys its cache with."""
    at = grant.scope
    whole = (at.workspace_id, at.agent_id, grant.runner_id, at.conversation_id, at.subthread_id)
    return sha256(_canonical(whole)).hexdigest()[:32]


def run_context(
    part: ResolvedAgent,
    grant: Grant,
    given: RunInput,
    *,
    trace_id: str,
    state: StateShown,
    host_version: str,
) -> dict[str, Any]:
    """Put one run's context together."""
    at, given = grant.scope, addressed_to(given, grant.scope.agent_id)
    event = given.event
    stamp = int(given.at if event is None or event.event_time is None else event.event_time)
    event_type = MESSAGE if event is None else event.event_type
    resources, refs = _for_this_run(part, given)
    contents = _contents(given)
    inline = bool(contents or given.attachments)
    begun = given.begun_seq or given.seq
    context: dict[str, Any] = {
        "run_id": at.run_id,
        "trigger": {"type": event_type, "source": given.source, "timestamp": stamp},
        "event": {
            "event_id": f"{at.conversation_id}.{given.seq}",
            "event_type": event_type,
            "event_time": stamp,
            "source": given.source,
            "data": {} if event is None else event.data,
        },
        "conversation": {
            "conversation_id": at.conversation_id,
            "bot_id": at.agent_id,
            "workspace_id": at.workspace_id,
        },
        "actor": actor_of(event, at.user_id, given.source),
        "input": {"text": given.text, "contents": contents, "attachments": list(given.attachments)},
        "delivery": {"surface": given.source, "supports_streaming": True},
        "resources": resources,
        "context": {
            "conversation_id": at.conversation_id,
            "latest_cursor": cursor_of(Place(begun, begun), at.conversation_id, View(at.subthread_id)),
            "event_seq": given.seq if given.newest_event is None else given.newest_event,
            "transcript_seq": given.seq if given.newest_item is None else given.newest_item or None,
            "has_history_before": given.earlier_history,
            "inline_policy": {"mode": "current_event" if inline else "none", "delivered_count": int(inline)},
            "available_apis": part.available_apis,
        },
        "state": state.values,
        "runtime": {
            "host": HOST_NAME,
            "protocol_version": "1",
            "trace_id": trace_id,
            "deadline_at": grant.deadline_at,
            "timezone": _time_zone(part, given),
            "static_refs": refs,
            "metadata": _host_says(grant, state, host_version),
        },
        "config": part.config,
    }
    if (subject := subject_of(event, given.message)) is not None:
        context["subject"] = subject
    if locale := given.locale or part.extras.locale:
        context["runtime"]["locale"] = locale
    if part.extras.public_only:
        context["runtime"]["reach"] = "public"
    if event is not None:
        _tell_more(context, event)
        _without_large_data(context["event"], event, raw_ref_of(at.conversation_id, given.seq))
    if given.params:
        context["adapter"] = {"extra": {"params": given.params}}
    return context


def _host_says(grant: Grant, state: StateShown, host_version: str) -> dict[str, Any]:
    told: dict[str, Any] = {"host_version": host_version, "session_key": session_key(grant)}
    if "state.get" in grant.actions:
        told["state_scopes"] = sorted(grant.state_scopes)
    if state.left_out:
        told["state_truncated"] = {scope: list(keys) for scope, keys in sorted(state.left_out.items())}
    return told


def _without_large_data(event: dict[str, Any], given: RunEvent, raw_ref: str) -> None:
    """Put in the place of data that are too much for a context what they are, and where to read them."""
    if not is_large(given):
        return
    whole = _canonical(given.data)
    keys = list(given.data)[:SUMMARY_KEYS]
    event["raw_ref"] = {"ref_id": raw_ref}
    event["data"] = {
        "summary": {"size_bytes": len(whole), "keys": keys, "text": whole.decode()[:SUMMARY_CHARS]},
    }


def _tell_more(context: dict[str, Any], event: RunEvent) -> None:
    if not context["input"]["text"]:
        del context["input"]["text"]
    for name in ("source_event_type", "raw_ref"):
        if (value := getattr(event, name)) is not None:
            context["event"][name] = value
    for name in ("launcher_type", "launcher_id"):
        if (value := getattr(event, name)) is not None:
            context["conversation"][name] = value
    if event.subthread_id is not None:
        context["conversation"]["thread_id"] = context["context"]["thread_id"] = event.subthread_id
    if event.delivery is not None:
        context["delivery"] = {**context["delivery"], **event.delivery}


def addressed_to(given: RunInput, agent_id: str) -> RunInput:
    """An input as this agent gets it: without its own name in front. The log keeps the words as they were said."""
    if not given.text.startswith(SIGNS) or (text := without_mention(given.text, agent_id)) == given.text:
        return given
    content = given.message.get("content")
    if not isinstance(content, list):
        return replace(given, text=text)
    blocks = [dict(block) for block in cast("list[Mapping[str, Any]]", content)]
    first = next((block for block in blocks if block.get("type") == "text"), None)
    if first is not None:
        first["text"] = without_mention(str(first["text"]), agent_id)
    return replace(given, text=text, message={**given.message, "content": blocks})


def _contents(given: RunInput) -> list[dict[str, str]]:
    """The words of the input, block by block; everything else comes as an attachment."""
    content = given.message.get("content")
    if not isinstance(content, list):
        return [{"type": "text", "text": given.text}] if given.text else []
    blocks = cast("list[Mapping[str, Any]]", content)
    return [{"type": "text", "text": block["text"]} for block in blocks if block.get("type") == "text"]


def _time_zone(part: ResolvedAgent, given: RunInput) -> str:
    """The device's, which the door has checked; else the user's; else the agent's; else UTC. Never the server's."""
    return device_zone(given.params) or given.time_zone or part.extras.time_zone or LAST_RESORT


def shows_frontend_tools(part: ResolvedAgent, given: RunInput) -> bool:
    """Return the owner's setting; unset, only the AG-UI door shows client tools, because its clients expect it."""
    wanted = part.extras.frontend_tools
    return given.door == "ag-ui" if wanted is None else wanted


def _for_this_run(part: ResolvedAgent, given: RunInput) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Resources and static references, with the client's own tools if there are any."""
    if "tools" not in given.params or not shows_frontend_tools(part, given):
        return part.resources, part.static_refs
    shown, _ = frontend_tools(given.params["tools"], part.allowance.tools)
    tools = [*part.resources["tools"], *shown]
    refs = {**part.static_refs, "tool_schemas": static_ref("tool_schemas", tools)} if part.static_refs else {}
    return {**part.resources, "tools": tools}, refs


def unseen_tools(part: ResolvedAgent, given: RunInput) -> list[str]:
    """Client tools that are left out because a host tool of the agent has their name: worth a warning."""
    if "tools" not in given.params or not shows_frontend_tools(part, given):
        return []
    return frontend_tools(given.params["tools"], part.allowance.tools)[1]
