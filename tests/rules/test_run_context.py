"""What a runner is told is exactly the protocol's context."""

from typing import Any

from paddock.rules.access.permissions import BindingPolicy, RunScope, allowance
from paddock.rules.run.context import RunInput, StateShown, resolved_agent, run_context, session_key
from paddock_sdk.protocol.host_calls import HOST_CALLS
from paddock_sdk.protocol.manifest import AgentRunnerManifest
from paddock_sdk.protocol.run_context import AgentRunContext

OFFERED = frozenset(HOST_CALLS)


def a_manifest(**permissions: list[str]) -> AgentRunnerManifest:
    return AgentRunnerManifest.model_validate(
        {"id": "plugin:a/b/c", "name": "c", "label": {}, "capabilities": {}, "permissions": permissions, "context": {}}
    )


def a_context(**permissions: list[str]) -> dict[str, Any]:
    part = resolved_agent(
        allowance(a_manifest(**permissions), BindingPolicy(), OFFERED), {"model": "m"}, wants_static_refs=True
    )
    grant = part.allowance.for_run(RunScope("r1", "w", "u", "agent", "thread"), deadline_at=1300.5)
    given = RunInput("hello", {"id": "m1", "content": "hello"}, {"state": {"x": 1}}, "api", 7, 1000.25, True)
    return run_context(part, grant, given, trace_id="t", state=StateShown({"conversation": {"k": 1}}), host_version="0")


def test_the_context_is_read_by_the_protocol_without_a_field_left_over() -> None:
    raw = a_context(history=["page"], storage=["plugin"])
    read = AgentRunContext.model_validate(raw)
    written = read.model_dump(mode="json", exclude_none=True)
    for name, value in raw.items():
        assert _within(value, written[name]), name
    assert not read.model_extra
    assert read.runtime.host == "paddock"
    assert read.state.conversation == {"k": 1}
    assert read.context.inline_policy.mode == "current_event"


def _within(part: Any, whole: Any) -> bool:
    if isinstance(part, dict):
        return all(key in whole and _within(value, whole[key]) for key, value in part.items())
    return part == whole


def test_available_apis_are_true_exactly_for_what_is_granted() -> None:
    apis = a_context(history=["page"], storage=["plugin"])["context"]["available_apis"]
    assert {name for name, on in apis.items() if on} == {"history_page", "state", "storage"}
    assert not any(a_context()["context"]["available_apis"].values())


def test_history_is_never_part_of_it() -> None:
    context = a_context(history=["page"])
    assert "bootstrap" not in context
    assert "messages" not in context


def test_static_references_stay_the_same_while_nothing_changes() -> None:
    first, again = (a_context(storage=["plugin"])["runtime"]["static_refs"] for _ in range(2))
    assert first == again
    assert a_context()["runtime"]["static_refs"] != first


def test_the_session_key_is_stable_and_differs_by_agent_and_conversation() -> None:
    part = allowance(a_manifest(), BindingPolicy(), OFFERED)
    keys = {
        session_key(part.for_run(RunScope(run, "w", "u", agent, thread), deadline_at=0))
        for run in ("r1", "r2")
        for agent in ("a", "b")
        for thread in ("x", "y")
    }
    assert len(keys) == 4
