"""The checks by themselves: what each lets pass, where exactly it stops, and what it says."""

from typing import Any

import pytest

from gate.house import over
from gate.matrix import VALID
from paddock.rules.access.gate import (
    LOOKED_AT,
    NO_BOUND,
    CallCheck,
    CallRefusedError,
    Cap,
    check_operation,
    check_resource,
    check_scope,
    check_size,
    named,
    other_conversation,
    within_a_page,
)
from paddock.rules.access.limits import MAX_PAGE, Rates, TokenBucket
from paddock.rules.access.permissions import Grant, RunScope
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.values import replace
from paddock_sdk.protocol.host_calls import HOST_CALLS

GRANT = Grant(
    scope=RunScope("r", "w", "u", "a", "c"),
    runner_id="plugin:test/one/default",
    actions=frozenset({"tools.call"}),
    state_scopes=frozenset({"actor", "conversation"}),
    storage_areas=frozenset({"plugin"}),
    deadline_at=0.0,
    models={"demo": frozenset({"invoke"})},
    tools={"current_time": frozenset({"call", "detail"}), "t-2": frozenset()},
    knowledge_bases={"kb-1": frozenset({"retrieve"})},
    platform_actions=frozenset({"message.edit"}),
)
CAPS = [(action, cap) for action, looked in LOOKED_AT.items() for cap in looked.caps]
WHOLE = [(action, looked.call_bytes) for action, looked in LOOKED_AT.items() if looked.call_bytes != NO_BOUND]
COUNTED = [(action, looked.at_most) for action, looked in LOOKED_AT.items() if looked.at_most]


def asked(action: str, /, **changes: Any) -> Any:
    return HOST_CALLS[action].params.model_validate({"run_id": "r", **VALID[action], **changes})


def refused(check: Any, *arguments: Any) -> HostError:
    with pytest.raises(HostError) as error:
        check(*arguments)
    return error.value


def the_refusal(check: Any, *arguments: Any) -> CallRefusedError:
    error = refused(check, *arguments)
    assert isinstance(error, CallRefusedError)
    assert error.code is ErrorCode.UNAUTHORIZED
    return error


def test_a_call_outside_the_grant_is_refused_and_named() -> None:
    check_operation(GRANT, "tools.call")
    error = the_refusal(check_operation, GRANT, "state.get")
    assert error.message.startswith("this run was not granted state.get: its manifest does not ask for permissions.st")
    assert error.reason == "state.get is not in the grant of the run"


@pytest.mark.parametrize(
    ("action", "field", "granted", "others"),
    [
        ("models.invoke", "model_id", "demo", ["m-2", "current_time"]),
        ("tools.call", "tool_name", "current_time", ["t-2", "demo"]),
        ("knowledge.retrieve", "kb_id", "kb-1", ["kb-2", "demo"]),
    ],
)
def test_only_what_the_grant_names_may_be_touched(action: str, field: str, granted: str, others: list[str]) -> None:
    looked = LOOKED_AT[action]
    check_resource(GRANT, looked, asked(action, **{field: granted}))
    for other in others:
        error = the_refusal(check_resource, GRANT, looked, asked(action, **{field: other}))
        assert error.message == f"this run was not granted {looked.operation} on {other!r}"
        assert error.reason == "not a resource of this run"


def test_an_operation_that_is_not_granted_on_a_resource_is_said_only_to_the_audit() -> None:
    error = the_refusal(check_resource, GRANT, LOOKED_AT["models.stream"], asked("models.stream"))
    assert error.message == "this run was not granted stream on 'demo'"
    assert error.reason == "granted on it: invoke"
    both = replace(GRANT, models={"demo": frozenset({"rerank", "invoke"})})
    assert the_refusal(check_resource, both, LOOKED_AT["models.stream"], asked("models.stream")).reason == (
        "granted on it: invoke, rerank"
    )


def test_a_long_name_is_not_said_back_whole() -> None:
    error = the_refusal(check_resource, GRANT, LOOKED_AT["tools.call"], asked("tools.call", tool_name="x" * 1000))
    assert "x" * 128 + "'" in error.message
    assert "x" * 129 not in error.message


@pytest.mark.parametrize(
    ("action", "what", "granted"),
    [
        ("state.get", "state scope", "actor, conversation"),
        ("storage.list", "storage area", "plugin"),
        ("platform.request_action", "platform action", "message.edit"),
    ],
)
def test_a_scope_outside_the_grant_is_refused_and_those_inside_are_named(action: str, what: str, granted: str) -> None:
    looked = LOOKED_AT[action]
    check_scope(GRANT, looked, asked(action))
    error = the_refusal(check_scope, GRANT, looked, asked(action, **{looked.scope: "y" * 100}))
    assert error.message == f"this run was not granted the {what} {'y' * 64!r}; granted are: {granted}"
    assert error.reason == f"a {what} outside the grant of the run"
    bare = replace(GRANT, state_scopes=frozenset(), storage_areas=frozenset(), platform_actions=frozenset())
    assert the_refusal(check_scope, bare, looked, asked(action)).message.endswith("granted are: none")


@pytest.mark.parametrize("action", ["history.page", "history.search"])
def test_a_run_names_its_own_conversation_or_one_of_its_workspace_if_granted(action: str) -> None:
    looked = LOOKED_AT[action]

    def naming(conversation: Any) -> Any:
        return asked(
            action,
            **(
                {"filters": {"conversation_id": conversation}}
                if "search" in action
                else {looked.conversation: conversation}
            ),
        )

    assert other_conversation(GRANT, looked, asked(action)) is None
    assert other_conversation(GRANT, looked, naming("c")) is None
    error = the_refusal(other_conversation, GRANT, looked, naming("d"))
    assert error.message == "this run may not read that conversation"
    assert error.reason == "the run may read its own conversation only"
    wide = replace(GRANT, history_scope="workspace")
    assert other_conversation(wide, looked, naming("d")) == "d"
    assert other_conversation(wide, looked, naming("c")) is None


def test_a_conversation_that_is_no_string_is_an_invalid_argument() -> None:
    wide = replace(GRANT, history_scope="workspace")
    looked = LOOKED_AT["history.search"]
    error = refused(other_conversation, wide, looked, asked("history.search", filters={"conversation_id": 7}))
    assert (error.code, error.message) == (ErrorCode.INVALID_ARGUMENT, "filters.conversation_id must be a string")
    assert other_conversation(GRANT, LOOKED_AT["state.get"], asked("state.get")) is None


@pytest.mark.spec("gate/sizes")
@pytest.mark.parametrize(("action", "cap"), CAPS, ids=[f"{action}-{cap.field}" for action, cap in CAPS])
def test_each_field_may_hold_exactly_its_cap(action: str, cap: Cap) -> None:
    looked = LOOKED_AT[action]
    less = over(replace(cap, most=cap.most - 1))
    check_size(looked, asked(action, **{cap.field: less}), action, 0)
    error = refused(check_size, looked, asked(action, **{cap.field: over(cap)}), action, 0)
    assert error.code is ErrorCode.PAYLOAD_TOO_LARGE
    said = f"{cap.field} may have at most {cap.most} {cap.measure}; this one has {cap.most + 1}"
    assert error.message == (f"{said}; {cap.instead}" if cap.instead else said)
    assert not error.retryable


@pytest.mark.parametrize("action", ["state.set", "storage.set"])
def test_a_value_over_its_cap_is_told_which_call_takes_it(action: str) -> None:
    [cap] = [cap for cap in LOOKED_AT[action].caps if cap.field.startswith("value")]
    error = refused(check_size, LOOKED_AT[action], asked(action, **{cap.field: over(cap)}), action, 0)
    assert "storage.set" in error.message


@pytest.mark.parametrize("padding", ["", "=", "=="])
def test_base64_is_measured_by_what_it_stands_for(padding: str) -> None:
    looked = CallCheck(caps=(Cap("value_base64", 6 - len(padding), "bytes"),))
    text = "A" * (8 - len(padding)) + padding
    check_size(looked, asked("storage.set", value_base64=text), "storage.set", 0)
    tight = CallCheck(caps=(Cap("value_base64", 5 - len(padding), "bytes"),))
    refused(check_size, tight, asked("storage.set", value_base64=text), "storage.set", 0)


@pytest.mark.spec("gate/sizes")
@pytest.mark.parametrize(("action", "most"), WHOLE)
def test_each_call_may_have_exactly_its_bytes(action: str, most: int) -> None:
    check_size(LOOKED_AT[action], asked(action), action, most)
    error = refused(check_size, LOOKED_AT[action], asked(action), action, most + 1)
    assert error.code is ErrorCode.PAYLOAD_TOO_LARGE
    assert error.message == f"a call of {action} may have at most {most} bytes; this one has {most + 1}"


@pytest.mark.spec("gate/sizes")
def test_the_sizes_are_the_published_ones() -> None:
    sizes = {(action, cap.field): cap.most for action, cap in CAPS}
    assert sizes == {
        ("models.rerank", "documents"): 64,
        ("knowledge.retrieve", "query_text"): 10_000,
        ("history.search", "query"): 10_000,
        ("artifacts.read_range", "length"): 1_048_576,
        ("artifacts.create", "content_base64"): 1_048_576,
        ("state.get", "key"): 256,
        ("state.set", "key"): 256,
        ("state.set", "value"): 262_144,
        ("state.delete", "key"): 256,
        ("storage.get", "key"): 256,
        ("storage.set", "key"): 256,
        ("storage.set", "value_base64"): 2_097_152,
        ("storage.delete", "key"): 256,
        ("storage.list", "prefix"): 256,
    }
    special = {action: most for action, most in WHOLE if most != 65_536}
    models = dict.fromkeys(("models.invoke", "models.stream", "models.rerank"), 3_145_728)
    assert special == models | {"tools.call": 1_048_576, "platform.request_action": 262_144}
    assert NO_BOUND == 2**62


@pytest.mark.spec("gate/pages")
@pytest.mark.parametrize(("action", "field"), COUNTED)
def test_a_page_is_brought_into_its_bounds_and_else_left_alone(action: str, field: str) -> None:
    looked = LOOKED_AT[action]
    for wanted, given in ((-5, 1), (0, 1), (1, 1), (MAX_PAGE, MAX_PAGE), (MAX_PAGE + 1, MAX_PAGE), (10**9, MAX_PAGE)):
        assert getattr(within_a_page(looked, asked(action, **{field: wanted})), field) == given
    question = asked(action, **{field: 7})
    assert within_a_page(looked, question) is question


def test_every_call_that_asks_for_so_many_is_bounded_and_no_other_is_touched() -> None:
    assert dict(COUNTED) == {
        "knowledge.retrieve": "top_k",
        "history.page": "limit",
        "history.search": "top_k",
        "events.page": "limit",
        "steering.pull": "limit",
    }
    question = asked("state.get")
    assert within_a_page(LOOKED_AT["state.get"], question) is question
    nothing = asked("steering.pull")
    assert within_a_page(LOOKED_AT["steering.pull"], nothing) is nothing


@pytest.mark.parametrize(
    ("params", "field", "name"),
    [
        ({"key": "k"}, "key", "k"),
        ({"key": "k" * 300}, "key", "k" * 256),
        ({"key": 7}, "key", ""),
        ({}, "key", ""),
        ({"filters": {"conversation_id": "c"}}, "filters.conversation_id", "c"),
        ({"filters": "x"}, "filters.conversation_id", ""),
        ({"filters": None}, "filters.conversation_id", ""),
        ({"x": "y"}, "", ""),
    ],
)
def test_what_a_call_names_is_read_from_whatever_was_sent(params: dict[str, Any], field: str, name: str) -> None:
    assert named(params, field) == name


def test_each_call_looks_at_the_fields_its_shape_has() -> None:
    for action, looked in LOOKED_AT.items():
        fields = HOST_CALLS[action].params.model_fields
        used = [looked.resource, looked.scope, looked.conversation, looked.at_most, *(cap.field for cap in looked.caps)]
        assert {name.partition(".")[0] for name in used if name} <= set(fields), action
        assert (looked.kind is None) == (not looked.operation)
        assert (looked.within is None) == (not looked.scope)


def test_every_field_that_could_name_a_scope_is_looked_at() -> None:
    """A call that grows a field of one of these names must say what the gate does with it."""
    telling = {
        "scope": "scope",
        "area": "scope",
        "action": "scope",
        "conversation_id": "conversation",
        "limit": "at_most",
    }
    for action, call in HOST_CALLS.items():
        for field in call.params.model_fields:
            if field in telling:
                assert getattr(LOOKED_AT[action], telling[field]) == field, action


def test_a_bucket_lets_a_burst_pass_and_then_so_many_a_second() -> None:
    bucket = TokenBucket.full(2.0, 3.0, 10.0)
    assert [bucket.take(10.0) for _ in range(4)] == [0.0, 0.0, 0.0, 0.5]
    assert bucket.take(10.5) == 0.0
    assert bucket.take(10.5) == 0.5
    assert [bucket.take(1000.0) for _ in range(4)] == [0.0, 0.0, 0.0, 0.5]
    assert bucket.take(999.0) == 0.5


def test_a_debt_grows_with_each_who_owes_and_is_paid_by_time() -> None:
    bucket = TokenBucket.full(2.0, 1.0, 10.0)
    assert [bucket.owe(10.0) for _ in range(3)] == [0.0, 0.5, 1.0]
    assert bucket.owe(11.0) == 0.5


def test_rates_follow_from_one_number_and_nought_lifts_them() -> None:
    assert Rates.of_a_run(50.0) == Rates() == Rates((50.0, 100.0), (500.0, 1000.0))
    assert Rates.of_a_run(0.0) == Rates(None, None)
    assert Rates.of_a_run(0.5).run == (0.5, 1.0)
