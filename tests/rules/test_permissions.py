"""What one run may do follows from three layers and nothing else."""

from typing import Any, get_args

import pytest

from paddock.rules.access.permissions import FILLS, GIVES, OPENS, BindingPolicy, RunScope, allowance, state_key
from paddock_sdk.protocol.host_calls import HOST_CALLS
from paddock_sdk.protocol.manifest import AgentRunnerManifest, AgentRunnerPermissions

EVERYTHING = frozenset(HOST_CALLS)


def a_manifest(**permissions: list[str]) -> AgentRunnerManifest:
    context = {"supports_history_search": True}
    return AgentRunnerManifest.model_validate(
        {
            "id": "plugin:a/b/c",
            "name": "c",
            "label": {},
            "capabilities": {},
            "permissions": permissions,
            "context": context,
        }
    )


def literals() -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for name, field in AgentRunnerPermissions.model_fields.items():
        for element in get_args(field.annotation):
            found += [(name, literal) for literal in get_args(element)]
    return found


@pytest.mark.parametrize("permission", literals())
def test_every_permission_opens_a_call_or_fills_a_resource(permission: tuple[str, str]) -> None:
    assert permission in OPENS or permission in FILLS or permission in GIVES


@pytest.mark.parametrize("permission", sorted(GIVES))
def test_what_a_run_finds_around_itself_was_asked_for(permission: tuple[str, str]) -> None:
    asked = allowance(a_manifest(**{permission[0]: [permission[1]]}), BindingPolicy(), EVERYTHING)
    assert getattr(asked, GIVES[permission])
    assert not getattr(allowance(a_manifest(), BindingPolicy(), EVERYTHING), GIVES[permission])


def test_every_call_a_permission_opens_exists() -> None:
    assert {action for actions in OPENS.values() for action in actions} <= EVERYTHING


@pytest.mark.parametrize("permission", sorted(OPENS))
def test_a_runner_gets_no_call_it_did_not_ask_for(permission: tuple[str, str]) -> None:
    kind, literal = permission
    policy = BindingPolicy(storage_areas=frozenset({"plugin", "workspace", "binding"}))
    granted = allowance(a_manifest(**{kind: [literal]}), policy, EVERYTHING)
    assert granted.actions == OPENS[permission]


def test_the_binding_can_only_take_away() -> None:
    asked = a_manifest(history=["page", "search"], storage=["plugin", "workspace"])
    wide = allowance(asked, BindingPolicy(), EVERYTHING)
    narrow = allowance(
        asked, BindingPolicy(history=False, state_scopes=frozenset(), storage_areas=frozenset()), EVERYTHING
    )
    assert wide.storage_areas == {"plugin"}
    assert narrow.actions == frozenset()
    assert narrow.actions < wide.actions


def test_what_the_host_does_not_offer_is_not_granted() -> None:
    assert allowance(a_manifest(history=["page"]), BindingPolicy(), frozenset()).actions == frozenset()


def test_state_keys_differ_for_every_part_of_the_scope() -> None:
    part = allowance(a_manifest(storage=["plugin"]), BindingPolicy(), EVERYTHING)
    base: dict[str, Any] = {"run_id": "r", "workspace_id": "w", "user_id": "u", "agent_id": "a", "session_id": "c"}
    keys = set()
    for changed in (None, "workspace_id", "agent_id", "session_id", "subthread_id"):
        other: dict[str, Any] = {changed: "other"} if changed else {}
        scope = RunScope(**(base | other))
        keys.add(state_key("conversation", part.for_run(scope, deadline_at=0)))
    assert len(keys) == 5
    assert state_key("subject", part.for_run(RunScope(**base), deadline_at=0)) is None
