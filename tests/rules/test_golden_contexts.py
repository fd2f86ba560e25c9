"""Whole run contexts, one for each kind of event, as a runner gets them. A golden file is part of the protocol."""

import json
from pathlib import Path
from typing import Any

import pytest

from paddock.rules.access.permissions import BindingPolicy, RunScope, allowance, granted_files
from paddock.rules.agents.resources import AgentExtras, KnowledgeBaseInfo, ModelInfo, Offered, OfferedFile, ToolInfo
from paddock.rules.log.payloads import HANDOVER, MEMBER_JOINED, SCHEDULE, RunEvent, from_payload, to_payload
from paddock.rules.run.context import RunInput, StateShown, resolved_agent, run_context
from paddock_sdk.protocol.host_calls import HOST_CALLS
from paddock_sdk.protocol.manifest import AgentRunnerManifest
from paddock_sdk.protocol.run_context import AgentRunContext

GOLDEN = Path(__file__).parent / "golden"
THREAD = "550e8400-e29b-41d4-a716-446655440000"
WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
THERE = Offered(
    models=(ModelInfo("demo", "llm", "builtin"), ModelInfo("rank", "rerank", "acme", frozenset({"rerank"}))),
    tools=(
        ToolInfo("current_time", "builtin", "The time in a zone.", {"type": "object"}, read_only=True),
        ToolInfo("send_mail", "function", "Sends a mail.", {"type": "object"}),
    ),
    bases=(KnowledgeBaseInfo("kb-1", "Handbook", "lexical"),),
    files=(OfferedFile("file-2", "handbook.pdf", "application/pdf", "kb-1"),),
)
MANIFEST = AgentRunnerManifest.model_validate(
    {
        "id": "plugin:acme/helper/default",
        "name": "default",
        "label": {"en_US": "Helper"},
        "capabilities": {},
        "permissions": {
            "models": ["invoke", "stream", "rerank"],
            "tools": ["detail", "call"],
            "knowledge_bases": ["list", "retrieve"],
            "history": ["page", "search"],
            "events": ["get"],
            "artifacts": ["metadata", "read"],
            "storage": ["plugin"],
            "files": ["config", "knowledge"],
            "platform_api": ["message.edit"],
        },
        "context": {"supports_history_search": True},
    }
)
POLICY = BindingPolicy(
    platform_actions=frozenset({"message.edit"}), files=(OfferedFile("file-1", "tone.md", "text/markdown"),)
)

MESSAGE_INPUT = RunInput(
    text="What is in the picture?",
    message={"id": "msg-1", "content": [{"type": "text", "text": "What is in the picture?"}, {"type": "binary"}]},
    params={
        "forwardedProps": {"runtime_mode": "chat", "client_time": {"device_timezone": "America/Los_Angeles"}},
        "tools": [{"name": "get_weather", "description": "Weather of a city.", "parameters": WEATHER}],
    },
    source="api",
    seq=7,
    at=1_773_658_353.25,
    earlier_history=True,
    attachments=({"artifact_id": "art-1", "mime_type": "image/png", "size": 4096, "name": "cat.png"},),
    door="ag-ui",
)


def an_event(event: RunEvent, source: Any, text: str = "", seq: int = 3) -> RunInput:
    return RunInput(text, {}, {}, source, seq, 1_773_658_360.0, False, event)


INPUTS: dict[str, RunInput] = {
    "message": MESSAGE_INPUT,
    "member_joined": an_event(
        RunEvent(
            event_type=MEMBER_JOINED,
            event_time=1_773_658_300.0,
            source_event_type="GroupMemberJoined",
            raw_ref={"ref_id": "raw-9"},
            data={"invited_by": "user-7"},
            actor={"actor_type": "user", "actor_id": "user-8", "actor_name": "Ben"},
            subject={"subject_type": "group", "subject_id": "group-1", "data": {"members": 12}},
            delivery={
                "surface": "platform",
                "reply_target": {"group_id": "group-1"},
                "supports_streaming": False,
                "supports_edit": True,
                "max_message_size": 4000,
            },
            subthread_id="topic-5",
            launcher_type="group",
            launcher_id="group-1",
        ),
        "platform",
    ),
    "schedule": an_event(
        RunEvent(
            event_type=SCHEDULE,
            data={"schedule": "0 9 * * *", "tick": "2026-03-16T09:00:00+08:00"},
            subject={"subject_type": "schedule", "subject_id": "job-1"},
        ),
        "scheduler",
        "Write the morning summary.",
    ),
    "handover": an_event(
        RunEvent(
            event_type=HANDOVER,
            data={"from_agent_id": "front-desk", "parent_run_id": "run-0", "reason": "needs a specialist"},
            actor={"actor_type": "agent", "actor_id": "front-desk"},
            subject={"subject_type": "conversation", "subject_id": THREAD},
        ),
        "system",
        "The customer asks about invoice 17.",
        seq=21,
    ),
}


def context_of(given: RunInput) -> dict[str, Any]:
    allowed = allowance(MANIFEST, POLICY, frozenset(HOST_CALLS), THERE)
    part = resolved_agent(
        allowed,
        {"instructions": "Be kind.", "rounds": 3},
        wants_static_refs=True,
        there=THERE,
        files=granted_files(MANIFEST.permissions, POLICY, THERE, allowed.knowledge_bases),
        extras=AgentExtras(skills=({"skill_name": "letters"},), locale="en_US", time_zone="Asia/Shanghai"),
    )
    thread = given.event.subthread_id if given.event else None
    grant = allowed.for_run(RunScope("run-1", "acme", "ann", "helper", THREAD, thread), deadline_at=1_773_658_653.5)
    state = {"conversation": {"external.session_id": "abc"}, "actor": {}, "runner": {}}
    return run_context(part, grant, given, trace_id="trace-1", state=StateShown(state), host_version="1.2.3")


@pytest.mark.parametrize("name", INPUTS)
def test_a_context_is_its_golden_file_and_the_protocol_reads_every_field_of_it(name: str) -> None:
    context = json.loads(json.dumps(context_of(INPUTS[name])))
    assert context == json.loads((GOLDEN / f"{name}.json").read_text())
    read = AgentRunContext.model_validate(context)
    assert _strangers(read) == []
    assert read.to_wire() == AgentRunContext.model_validate(read.to_wire()).to_wire()


def _strangers(model: Any, place: str = "") -> list[str]:
    """Fields the protocol has no name for, wherever they are."""
    found = [f"{place}.{name}" for name in model.model_extra or {}]
    for name in type(model).model_fields:
        value = getattr(model, name)
        for each in value if isinstance(value, list) else [value]:
            if hasattr(each, "model_extra"):
                found += _strangers(each, f"{place}.{name}")
    return found


def test_there_is_a_golden_file_for_each_and_no_other() -> None:
    assert {path.stem for path in GOLDEN.glob("*.json")} == set(INPUTS)


@pytest.mark.parametrize("name", INPUTS)
def test_an_event_is_the_same_after_it_was_recorded(name: str) -> None:
    event = INPUTS[name].event
    assert from_payload(json.loads(json.dumps(to_payload(event)))) == event


def test_history_is_in_none_of_them() -> None:
    for given in INPUTS.values():
        context = context_of(given)
        assert not {"messages", "bootstrap", "history"} & context.keys()
        assert context["context"]["inline_policy"]["mode"] in ("current_event", "none")


def test_an_event_without_words_inlines_nothing() -> None:
    context = context_of(INPUTS["member_joined"])
    assert context["context"]["inline_policy"] == {"mode": "none", "delivered_count": 0}
    assert "text" not in context["input"]
