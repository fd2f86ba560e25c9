"""The context of a run in LangBot's words. Pure: nothing is added that the grant does not hold, and what the other side
would trip over (fractions of seconds, unknown keys where it allows none) is left out.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from paddock_runners.toolkit.values import listing, mapping
from paddock_sdk import RunContext

Data = dict[str, Any]

SOURCES = frozenset({"platform", "webui", "api", "scheduler", "system", "host_adapter"})
ATTACHMENT_KEYS = ("type", "mime_type", "size", "name", "source", "url", "id")
"""All that an attachment may say in both dialects; it has no word for our artifact id but `id`."""
MODEL_OPERATIONS, TOOL_OPERATIONS, KNOWLEDGE_OPERATIONS = (
    ("invoke", "stream", "rerank"),
    ("detail", "call"),
    ("list", "retrieve"),
)
REPLY_TOOL = "event_reply"
"""How a LangBot runner that handles events answers: a tool of the host's. Here it is the run's own message."""
PULLED = ("history_page", "history_search", "event_get", "event_page", "state", "storage")
WHOLE_SECONDS = frozenset({"timestamp", "event_time", "created_at", "claimed_at", "deadline_at"})


def langbot_context(
    ctx: RunContext, contents: Sequence[Mapping[str, Any]], *, seconds_left: float, steers: bool
) -> Data:
    """Build the argument of `run_runner` and `run_agent`; `contents` are the attached files that could be read."""
    said = ctx.to_wire()
    return {
        "run_id": ctx.run_id,
        "trigger": _trigger(said["trigger"]),
        "event": whole_seconds(said["event"]),
        "conversation": _conversation(said),
        "actor": said.get("actor"),
        "subject": said.get("subject"),
        "input": langbot_input(said["input"], contents),
        "delivery": said["delivery"],
        "resources": resources(said["resources"]),
        "context": _access(said["context"], steers),
        "state": {scope: mapping(said["state"].get(scope)) for scope in ("conversation", "actor", "subject", "runner")},
        "runtime": _runtime(said["runtime"], seconds_left),
        "config": said.get("config", {}),
        "adapter": said.get("adapter"),
        "metadata": said.get("metadata", {}),
    }


def _trigger(said: Mapping[str, Any]) -> Data:
    source = said.get("source")
    return whole_seconds({**said, "source": source if source in SOURCES else "host_adapter"})


def _conversation(said: Mapping[str, Any]) -> Data | None:
    place = mapping(said.get("conversation"))
    if not place:
        return None
    return {**place, "sender_id": mapping(said.get("actor")).get("actor_id"), "session_id": place["conversation_id"]}


def langbot_input(said: Mapping[str, Any], contents: Sequence[Mapping[str, Any]] = ()) -> Data:
    return {
        "text": said.get("text"),
        "contents": [*listing(said.get("contents")), *contents],
        "attachments": [attachment(mapping(one)) for one in listing(said.get("attachments"))],
    }


def attachment(ref: Mapping[str, Any]) -> Data:
    told = {key: ref[key] for key in ATTACHMENT_KEYS if ref.get(key) is not None}
    kind = ref.get("artifact_type") or "file"
    return {"type": kind, **told, "id": ref.get("artifact_id")}


def resources(said: Mapping[str, Any]) -> Data:
    """Granted resources. LangBot reads an empty list of operations as "all", so a resource without any is left out."""
    storage = mapping(said.get("storage"))
    return {
        "models": [_with_counting(one) for one in _usable(said.get("models"), MODEL_OPERATIONS)],
        "tools": [*_usable(said.get("tools"), TOOL_OPERATIONS), reply_tool()],
        "knowledge_bases": _usable(said.get("knowledge_bases"), KNOWLEDGE_OPERATIONS),
        "skills": listing(said.get("skills")),
        "storage": {key: bool(storage.get(key)) for key in ("plugin_storage", "workspace_storage")},
        "platform_capabilities": mapping(said.get("platform_capabilities")),
    }


def reply_tool() -> Data:
    parameters = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    about = "Reply to the message or event that caused this run."
    kind = {"tool_name": REPLY_TOOL, "tool_type": "event", "description": about}
    return {**kind, "operations": [*TOOL_OPERATIONS], "parameters": parameters}


def _usable(said: object, known: Sequence[str]) -> list[Data]:
    return [kept for one in listing(said) if (kept := _kept(one, known))["operations"]]


def _kept(resource: object, known: Sequence[str]) -> Data:
    told = mapping(resource)
    return {**told, "operations": [one for one in listing(told.get("operations")) if one in known]}


def _with_counting(model: Data) -> Data:
    """Add token counting to a model that may be invoked."""
    asks = {"invoke", "stream"} & set(model["operations"])
    return {**model, "operations": [*model["operations"], *(["count_tokens"] if asks else [])]}


def _access(said: Mapping[str, Any], steers: bool) -> Data:
    """Which pulls will be answered. The prompt, the run's own record and replies always are: they are the run's own."""
    ours = mapping(said.get("available_apis"))
    pulled = {name: bool(ours.get(name)) for name in PULLED}
    offered = {**pulled, "prompt_get": True, "run_get": True, "reply_stream": True, "steering_pull": steers}
    return {**said, "available_apis": offered}


def _runtime(said: Mapping[str, Any], seconds_left: float) -> Data:
    return {
        "langbot_version": None,
        "trace_id": said.get("trace_id"),
        "deadline_at": time.time() + seconds_left,
        "metadata": {**mapping(said.get("metadata")), "host": said.get("host")},
    }


def whole_seconds(said: Mapping[str, Any]) -> Data:
    """Round times to whole seconds; LangBot takes no fractions."""
    told = dict(said)
    for key in WHOLE_SECONDS & told.keys():
        told[key] = None if told[key] is None else int(told[key])
    return told


def system_prompt(config: Mapping[str, Any]) -> list[Data]:
    """Answer of `get_prompt`: the agent's own prompt, or its instructions as one."""
    prompt = [mapping(one) for one in listing(config.get("prompt"))]
    if prompt:
        return prompt
    instructions = str(config.get("instructions") or "")
    return [{"role": "system", "content": instructions}] if instructions else []
