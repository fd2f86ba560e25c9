"""What a runner is told when a run starts: the `AgentRunContext` of the protocol, as a plain value. Pure.

The part that is the same for every run of an agent is computed once; history is never part of it.
"""

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Literal

import msgspec

from paddock.rules.permissions import Allowance, Grant
from paddock.rules.values import Value

HOST_NAME = "paddock"
TriggerSource = Literal["platform", "webui", "api", "scheduler", "system", "host_adapter"]

_PLACE = re.compile(r"h[0-9a-f]{1,15}", re.ASCII)
_canonical = msgspec.json.Encoder(order="deterministic").encode


class AgentPart(Value, frozen=True):
    """What every run of one agent shares, until its configuration changes."""

    allowance: Allowance
    config: Mapping[str, Any]
    resources: Mapping[str, Any]
    available_apis: Mapping[str, bool]
    static_refs: Mapping[str, Any]


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


def agent_part(allowance: Allowance, config: Mapping[str, Any], *, wants_static_refs: bool) -> AgentPart:
    apis = _available_apis(allowance.actions)
    resources: dict[str, Any] = {
        "models": [],
        "tools": [],
        "knowledge_bases": [],
        "files": [],
        "storage": {
            "plugin_storage": "plugin" in allowance.storage_areas and apis["storage"],
            "workspace_storage": "workspace" in allowance.storage_areas and apis["storage"],
            "binding_storage": "binding" in allowance.storage_areas and apis["storage"],
        },
        "platform_capabilities": {},
    }
    refs = {"resources": static_ref("resources", resources)} if wants_static_refs else {}
    return AgentPart(allowance, config, resources, apis, refs)


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
    whole = (at.workspace_id, at.agent_id, grant.runner_id, at.conversation_id, at.thread_id)
    return sha256(_canonical(whole)).hexdigest()[:32]


def cursor_of(seq: int) -> str:
    """A place in a conversation's history, opaque to runners."""
    return f"h{seq:x}"


def seq_of(cursor: str) -> int | None:
    """The place a cursor names, or None when it is not one of ours."""
    try:
        return int(cursor[1:], 16) if _PLACE.fullmatch(cursor) else None
    except ValueError:
        return None


def run_context(
    part: AgentPart,
    grant: Grant,
    given: RunInput,
    *,
    trace_id: str,
    state: Mapping[str, Mapping[str, Any]],
    host_version: str,
) -> dict[str, Any]:
    """Put one run's context together."""
    at = grant.scope
    stamp = int(given.at)
    context: dict[str, Any] = {
        "run_id": at.run_id,
        "trigger": {"type": "message.received", "source": given.source, "timestamp": stamp},
        "event": {
            "event_id": f"{at.conversation_id}.{given.seq}",
            "event_type": "message.received",
            "event_time": stamp,
            "source": given.source,
            "data": {},
        },
        "conversation": {
            "conversation_id": at.conversation_id,
            "bot_id": at.agent_id,
            "workspace_id": at.workspace_id,
        },
        "actor": {"actor_type": "user", "actor_id": at.user_id},
        "subject": {"subject_type": "message", "subject_id": given.message.get("id")},
        "input": {
            "text": given.text,
            "contents": [{"type": "text", "text": given.text}] if given.text else [],
            "attachments": [],
        },
        "delivery": {"surface": given.source, "supports_streaming": True},
        "resources": part.resources,
        "context": {
            "conversation_id": at.conversation_id,
            "latest_cursor": cursor_of(given.seq),
            "event_seq": given.seq,
            "transcript_seq": given.seq,
            "has_history_before": given.earlier_history,
            "inline_policy": {"mode": "current_event", "delivered_count": 1},
            "available_apis": part.available_apis,
        },
        "state": state,
        "runtime": {
            "host": HOST_NAME,
            "protocol_version": "1",
            "trace_id": trace_id,
            "deadline_at": grant.deadline_at,
            "static_refs": part.static_refs,
            "metadata": {"host_version": host_version, "session_key": session_key(grant)},
        },
        "config": part.config,
    }
    if given.params:
        context["adapter"] = {"extra": {"params": given.params}}
    return context
