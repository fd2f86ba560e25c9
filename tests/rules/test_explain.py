"""Why a run may or may not do something, told from what was stored with it."""

from typing import Any

import pytest

from paddock.rules.access.explain import LAYERS, Reason, explain, meant
from paddock.rules.access.gate import LOOKED_AT
from paddock.rules.access.permissions import ABOVE_CEILING, BindingPolicy, RunScope, allowance
from paddock.rules.rows.rows import RunRow
from paddock.rules.values import replace
from paddock_sdk.protocol.host_calls import HOST_CALLS
from paddock_sdk.protocol.manifest import AgentRunnerManifest

RUN = RunRow(
    "r", "s", "w", "u", "", "helper", "plugin:a/b/c", "running", None, None, 1.0, 1.0, None, 100.0, 1, 1, b"", b""
)
EVERYTHING = frozenset(HOST_CALLS)


def told(
    permissions: dict[str, Any],
    policy: BindingPolicy | None = None,
    offered: frozenset[str] = EVERYTHING,
    above: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """What is stored with a run of a runner that asks for this."""
    manifest = AgentRunnerManifest.model_validate(
        {
            "id": "plugin:a/b/c",
            "name": "c",
            "label": {},
            "capabilities": {},
            "permissions": permissions,
            "context": {"supports_history_search": False},
            "metadata": {ABOVE_CEILING: above} if above else {},
        }
    )
    granted = allowance(manifest, policy or BindingPolicy(), offered)
    return granted.for_run(RunScope("r", "w", "u", "helper", "s"), deadline_at=100.0).summary()


@pytest.mark.parametrize(
    ("stored", "action", "layer"),
    [
        (told({"history": ["page"]}), "history.page", ""),
        (told({}), "history.page", "manifest"),
        (told({"history": ["search"]}), "history.search", "manifest"),
        (told({}, above={"history": ["page"]}), "history.page", "plugin_file"),
        (told({"history": ["page"]}, BindingPolicy(history=False)), "history.page", "agent"),
        (told({"storage": ["plugin"]}, BindingPolicy(state_scopes=frozenset())), "state.get", "agent"),
        (told({"platform_api": ["message.edit"]}), "platform.request_action", "agent"),
        (told({"history": ["page"]}, offered=frozenset()), "history.page", "host"),
        ({}, "history.page", "run"),
    ],
)
def test_the_layer_that_decided_is_named(stored: dict[str, Any], action: str, layer: str) -> None:
    story = explain(RUN, stored, action, "", 50.0)
    assert (story.layer, story.granted, story.allowed) == (layer, not layer, not layer)
    assert len(story.because) == 1
    assert story.because[0][0].isupper()
    assert story.because[0].endswith(".")
    if layer in LAYERS:
        assert LAYERS[layer].format(agent="helper")[1:] in story.because[0]


GRANTED = {
    "actions": list(LOOKED_AT),
    "state_scopes": ["conversation"],
    "storage_areas": [],
    "tools": {"add": ["call", "detail"], "look": ["detail"]},
    "platform_actions": ["message.edit"],
}


@pytest.mark.parametrize(
    ("action", "resource", "granted", "words"),
    [
        ("tools.call", "add", True, "'add' is one of its tools"),
        ("tools.call", "look", False, "of 'look' it was granted detail, not call"),
        ("tools.call", "sing", False, "granted are: add, look"),
        ("models.invoke", "m", False, "granted are: none"),
        ("state.get", "conversation", True, "'conversation' is one of its state scopes"),
        ("state.get", "conversation/key", True, "'conversation' is one of its state scopes"),
        ("state.get", "actor", False, "'actor' is not one of its state scopes; granted are: conversation"),
        ("storage.get", "plugin", False, "granted are: none"),
        ("platform.request_action", "message.edit", True, "each request still waits for the user's approval"),
        ("platform.request_action", "message.recall", False, "granted are: message.edit"),
        ("history.page", "s", True, "the run's own conversation"),
        ("history.page", "other", False, "its own conversation only"),
        ("artifacts.metadata", "a-1", True, "looks as if it did not exist"),
        ("events.page", "x", True, "the host offered it."),
    ],
)
def test_a_resource_is_explained_too(action: str, resource: str, granted: bool, words: str) -> None:
    story = explain(RUN, GRANTED, action, resource, 50.0)
    assert (story.granted, story.layer) == (granted, "" if granted else "agent")
    assert words in story.because[0]
    assert "; ".join(reason.words for reason in story.reasons)[1:] == story.because[0][1:-1]


def test_other_conversations_are_explained_when_they_are_granted() -> None:
    story = explain(RUN, GRANTED | {"history_scope": "workspace"}, "history.page", "other", 50.0)
    assert story.granted
    assert "other conversations of its workspace" in story.because[0]


@pytest.mark.parametrize(
    ("run", "now", "words"),
    [
        (replace(RUN, status="completed"), 50.0, "has ended (completed)"),
        (replace(RUN, status="failed", code="runner.crashed"), 50.0, "has ended (runner.crashed)"),
        (RUN, 100.1, "past its deadline"),
    ],
)
def test_what_was_granted_ends_with_the_run(run: RunRow, now: float, words: str) -> None:
    story = explain(run, GRANTED, "history.page", "", now)
    assert (story.granted, story.allowed, story.layer) == (True, False, "run")
    assert words in story.because[1]


def test_a_slip_in_the_name_of_a_call_is_recognised() -> None:
    assert meant("history.pages") == "there is no host call 'history.pages'; did you mean history.page?"
    assert "there are: models.invoke, " in meant("zzz")


def test_reasons_have_codes_and_what_fills_them_for_programs_that_speak_another_language() -> None:
    ended = replace(RUN, status="failed", code="runner.crashed")
    story = explain(ended, GRANTED, "tools.call", "look", 50.0)
    assert story.reasons == [
        Reason("granted", {"agent": "helper"}),
        Reason("kind.operation_missing", {"name": "look", "kind": "tools", "granted": "detail", "operation": "call"}),
        Reason("ended", {"status": "runner.crashed"}),
    ]
    nothing = explain(RUN, GRANTED, "storage.get", "plugin", 50.0).reasons[-1]
    assert nothing == Reason("within.missing", {"name": "plugin", "kind": "storage_areas", "granted": ""})
    assert nothing.words == "'plugin' is not one of its storage areas; granted are: none"
