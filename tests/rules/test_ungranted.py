"""A call that a run was not granted: its runner is told what opens it and who did not give it."""

import re

import pytest

from paddock.rules.access.gate import LOOKED_AT, permission_for, why_not
from paddock.rules.access.permissions import OPENS, USES, BindingPolicy, RunScope, allowance
from paddock_sdk.protocol.manifest import AgentRunnerContextPolicy, AgentRunnerManifest
from paddock_sdk.testing.grants import needed_for

ALL = frozenset(LOOKED_AT)
ASKS = {"storage": ["plugin"], "history": ["page", "search"]}


def told(method: str, *, agent: BindingPolicy | None = None, offered: frozenset[str] = ALL, **manifest: object) -> str:
    whole: dict[str, object] = {"permissions": ASKS, "metadata": {}, **manifest}
    made = AgentRunnerManifest.model_validate(
        {"id": "plugin:t/one/default", "name": "one", "label": {"en_US": "One"}, "capabilities": {}, "context": {}}
        | whole
    )
    granted = allowance(made, agent or BindingPolicy(), offered)
    assert method not in granted.actions
    return why_not(granted.for_run(RunScope("r", "w", "u", "a", "c"), deadline_at=0.0), method)


def test_the_permission_is_named_as_it_is_written_and_the_layer_that_lacks_it() -> None:
    storage = 'permissions.storage: ["plugin"]'
    start = "this run was not granted state.get: "
    assert told("state.get", permissions={}).startswith(f"{start}its manifest does not ask for {storage}.")
    above = {"paddock.above_ceiling": {"storage": ["plugin"]}}
    plugin_file = told("state.get", permissions={}, metadata=above)
    assert plugin_file.startswith(f"{start}its manifest asks for {storage}, the plugin file does not allow it.")
    agent = told("state.get", agent=BindingPolicy(state_scopes=frozenset()))
    assert agent.startswith(f"{start}its manifest and the plugin file have {storage}, the agent does not allow it.")
    assert "which this host does not offer" in told("state.get", offered=frozenset())


def test_a_call_that_the_manifest_says_it_does_not_use_names_where_it_says_so() -> None:
    why = told("history.search")
    assert 'asks for permissions.history: ["search"], but its context says' in why
    assert "(context.supports_history_search)" in why
    assert set(USES.values()) <= AgentRunnerContextPolicy.model_fields.keys()


@pytest.mark.parametrize("method", sorted(LOOKED_AT))
def test_what_is_named_opens_the_call_and_the_pretend_host_names_the_same(method: str) -> None:
    named = permission_for(method)
    if found := re.fullmatch(r'permissions\.(\w+): \["(\w+)"\]', named):
        assert method in OPENS[found[1], found[2]]
    else:
        assert method in {"steering.pull", "platform.request_action"}
    assert needed_for(method) == named
