"""Build the `AgentRunContext` of the protocol that a runner gets when a run starts. Pure.

The part that is the same for every run of an agent is computed once; history is never part of it.
"""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, cast, get_args

import msgspec

from paddock.rules.access.permissions import Allowance, Grant, RunScope
from paddock.rules.agents.config import masked_servers
from paddock.rules.agents.resources import (
    NO_EXTRAS,
    NOTHING_OFFERED,
    AgentExtras,
    Offered,
    OfferedFile,
    base_resources,
    file_resources,
    frontend_tools,
    model_resources,
    tool_resources,
)
from paddock.rules.log.events import SUMMARY_CHARS, Place, cursor_of, event_id_of, raw_ref_of
from paddock.rules.log.payloads import MESSAGE, RunEvent, actor_of, is_large, subject_of
from paddock.rules.rows.rows import View
from paddock.rules.schedule.time_zones import LAST_RESORT
from paddock.rules.session.routing import SIGNS, without_mention
from paddock.rules.values import Value, nothing, replace
from paddock_sdk.protocol.manifest import AgentRunnerManifest, StorageArea
from paddock_sdk.protocol.run_context import CONTEXT_API_CALLS, HOST_NAME, TriggerSource
from paddock_sdk.protocol.version import PROTOCOL_VERSION

SUMMARY_KEYS = 50
_canonical = msgspec.json.Encoder(order="deterministic").encode


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
    apis = {name: method in allowance.actions for name, method in CONTEXT_API_CALLS.items()}
    resources: dict[str, Any] = {
        "models": model_resources(there, allowance.models),
        "tools": tool_resources(there, allowance.tools),
        "knowledge_bases": base_resources(there, allowance.knowledge_bases),
        "files": file_resources(files),
        "storage": {
            f"{area}_storage": area in allowance.storage_areas and apis["storage"] for area in get_args(StorageArea)
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


def session_key(grant: Grant) -> str:
    """Opaque and stable per workspace, agent, runner, conversation and thread: what a runtime keys its cache with."""
    at = grant.scope
    whole = (at.workspace_id, at.agent_id, grant.runner_id, at.session_id, at.subthread_id)
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
    at, given = grant.scope, addressed_to(given, grant.scope.agent_id)
    resources, refs = _for_this_run(part, given)
    context: dict[str, Any] = {
        "run_id": at.run_id,
        **_happened(at, given),
        "resources": resources,
        "context": _access(part, at, given),
        "state": state.values,
        "runtime": {
            "host": HOST_NAME,
            "protocol_version": PROTOCOL_VERSION,
            "trace_id": trace_id,
            "deadline_at": grant.deadline_at,
            "timezone": _time_zone(part, given),
            "static_refs": refs,
            "metadata": _host_says(grant, state, host_version),
        },
        "config": part.config,
    }
    if locale := given.locale or part.extras.locale:
        context["runtime"]["locale"] = locale
    if part.extras.public_only:
        context["runtime"]["reach"] = "public"
    if given.params:
        context["adapter"] = {"extra": {"params": given.params}}
    return context


def _happened(at: RunScope, given: RunInput) -> dict[str, Any]:
    event = given.event
    event_type = MESSAGE if event is None else event.event_type
    stamp = int(given.at if event is None or event.event_time is None else event.event_time)
    told: dict[str, Any] = {
        "trigger": {"type": event_type, "source": given.source, "timestamp": stamp},
        "event": {
            "event_id": event_id_of(at.session_id, given.seq),
            "event_type": event_type,
            "event_time": stamp,
            "source": given.source,
            "data": {} if event is None else event.data,
        },
        "conversation": {
            "conversation_id": at.session_id,
            "bot_id": at.agent_id,
            "workspace_id": at.workspace_id,
        },
        "actor": actor_of(event, at.user_id, given.source),
        "input": {"text": given.text, "contents": _contents(given), "attachments": list(given.attachments)},
        "delivery": {"surface": given.source, "supports_streaming": True},
    }
    if (subject := subject_of(event, given.message)) is not None:
        told["subject"] = subject
    if event is not None:
        _tell_more(told, event)
        _without_large_data(told["event"], event, raw_ref_of(at.session_id, given.seq))
    return told


def _access(part: ResolvedAgent, at: RunScope, given: RunInput) -> dict[str, Any]:
    begun = given.begun_seq or given.seq
    inline = bool(given.attachments or _contents(given))
    access = {
        "conversation_id": at.session_id,
        "latest_cursor": cursor_of(Place(begun, begun), at.session_id, View(at.subthread_id)),
        "event_seq": given.seq if given.newest_event is None else given.newest_event,
        "transcript_seq": given.seq if given.newest_item is None else given.newest_item or None,
        "has_history_before": given.earlier_history,
        "inline_policy": {"mode": "current_event" if inline else "none", "delivered_count": int(inline)},
        "available_apis": part.available_apis,
    }
    subthread_id = given.event.subthread_id if given.event is not None else None
    return access if subthread_id is None else {**access, "thread_id": subthread_id}


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


def _tell_more(told: dict[str, Any], event: RunEvent) -> None:
    if not told["input"]["text"]:
        del told["input"]["text"]
    for name in ("source_event_type", "raw_ref"):
        if (value := getattr(event, name)) is not None:
            told["event"][name] = value
    for name in ("launcher_type", "launcher_id"):
        if (value := getattr(event, name)) is not None:
            told["conversation"][name] = value
    if event.subthread_id is not None:
        told["conversation"]["thread_id"] = event.subthread_id
    if event.delivery is not None:
        told["delivery"] = {**told["delivery"], **event.delivery}


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


def device_zone(params: Mapping[str, Any]) -> str | None:
    """The zone of the client's device, as its request said; the door has checked it."""
    props = params.get("forwardedProps")
    client_time = cast("dict[str, Any]", props).get("client_time") if isinstance(props, dict) else None
    device = cast("dict[str, Any]", client_time).get("device_timezone") if isinstance(client_time, dict) else None
    return device if isinstance(device, str) else None


ONLY_OF_A_RUN = ("run_id", "config", "state")
"""Left out of a rehearsal: settings may hold secrets, and the others exist only with a run."""


def rehearsed(
    part: ResolvedAgent, grant: Grant, event_type: str, text: str, *, at: float, host_version: str
) -> Mapping[str, Any]:
    """The context of a run in a new conversation; nobody has said anything before."""
    message = {"id": "", "role": "user", "content": text}
    given = RunInput(
        text=text,
        message=message,
        params={},
        source="api",
        seq=1,
        at=at,
        earlier_history=False,
        event=None if event_type == MESSAGE else RunEvent(event_type),
    )
    context = run_context(part, grant, given, trace_id="", state=NO_STATE, host_version=host_version)
    context["resources"] = {**context["resources"], "mcp": masked_servers(context["resources"]["mcp"])}
    return {name: value for name, value in context.items() if name not in ONLY_OF_A_RUN}
