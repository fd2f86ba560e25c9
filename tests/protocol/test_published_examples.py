"""The JSON examples this protocol was first published with, as written there."""

import json
from typing import Any

import pytest

from paddock_sdk.protocol.manifest import AgentRunnerContextPolicy
from paddock_sdk.protocol.results import KNOWN_RESULTS, RunFailed, parse_result
from paddock_sdk.protocol.run_context import AgentTrigger

RESULTS = """
{ "type": "message.delta", "data": { "chunk": { "role": "assistant", "content": "hel" } } }
{ "type": "message.completed", "data": { "message": { "role": "assistant", "content": "hello" } } }
{ "type": "state.updated", "data": { "scope": "conversation", "key": "external.session_id", "value": "abc" } }
{ "type": "action.requested", "data": { "action": "message.edit", "target": {"message_id": "..."}, "payload": {"text": "..."} } }
{ "type": "run.failed", "data": { "code": "runner.error", "message": "failed to call external agent", "retryable": false } }
""".strip().splitlines()  # noqa: E501 - as written


@pytest.mark.parametrize("line", RESULTS)
def test_a_result_example_is_read_as_its_type_and_written_back_with_the_same_data(line: str) -> None:
    example: dict[str, Any] = json.loads(line)
    result = parse_result({"run_id": "r-1", **example})
    assert type(result) is KNOWN_RESULTS[example["type"]]
    assert says_at_least(result.to_wire(), example)


def says_at_least(written: Any, example: Any) -> bool:
    if not isinstance(example, dict):
        return written == example
    return all(says_at_least(written.get(key), value) for key, value in example.items())


@pytest.mark.parametrize(
    ("line", "source"),
    [
        ('{ "type": "message.received", "source": "host_adapter" }', "host_adapter"),
        ('{ "type": "message.received", "source": "pipeline_adapter" }', "host_adapter"),
    ],
)
def test_the_trigger_examples_old_and_new_mean_the_same(line: str, source: str) -> None:
    trigger = AgentTrigger.from_wire(json.loads(line))
    assert trigger.to_wire() == {"type": "message.received", "source": source}


def test_the_failure_example_carries_code_message_and_retryable() -> None:
    failure = parse_result({"run_id": "r-1", **json.loads(RESULTS[-1])})
    assert isinstance(failure, RunFailed)
    assert (failure.data.code, failure.data.retryable) == ("runner.error", False)


def test_the_context_policy_of_the_older_text_is_still_a_context_policy() -> None:
    older = {
        "ownership": "self_managed",
        "bootstrap": "current_event",
        "max_inline_events": 0,
        "max_inline_bytes": 0,
        "supports_history_pull": True,
        "supports_history_search": True,
        "supports_artifact_pull": True,
        "owns_compaction": True,
        "wants_static_context_refs": True,
    }
    policy = AgentRunnerContextPolicy.from_wire(older)
    assert policy.supports_history_search
    assert policy.to_wire() == older
