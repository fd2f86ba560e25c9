"""What one run may do: manifest, binding and scope cut down to a `Grant`, frozen when the run starts. Pure.

The table below is the only place that says which permission opens which host call. A call that no permission opens
cannot be granted, and a permission that opens nothing fails a test.
"""

from collections.abc import Mapping
from hashlib import sha256
from types import MappingProxyType
from typing import Any, Literal

import msgspec

from paddock.rules.values import Value
from paddock_sdk.protocol.manifest import AgentRunnerManifest

StateScope = Literal["conversation", "actor", "subject", "runner", "binding"]
STATE_SCOPES: tuple[StateScope, ...] = ("conversation", "actor", "subject", "runner", "binding")

STATE_ACTIONS = frozenset({"state.get", "state.set", "state.delete"})
STORAGE_ACTIONS = frozenset({"storage.get", "storage.set", "storage.delete", "storage.list"})

OPENS: Mapping[tuple[str, str], frozenset[str]] = {
    ("models", "invoke"): frozenset({"models.invoke"}),
    ("models", "stream"): frozenset({"models.stream"}),
    ("models", "rerank"): frozenset({"models.rerank"}),
    ("tools", "detail"): frozenset({"tools.get_detail"}),
    ("tools", "call"): frozenset({"tools.call"}),
    ("knowledge_bases", "retrieve"): frozenset({"knowledge.retrieve"}),
    ("history", "page"): frozenset({"history.page"}),
    ("history", "search"): frozenset({"history.search"}),
    ("events", "get"): frozenset({"events.get"}),
    ("events", "page"): frozenset({"events.page"}),
    ("artifacts", "metadata"): frozenset({"artifacts.metadata"}),
    ("artifacts", "read"): frozenset({"artifacts.read_range", "artifacts.open_stream"}),
    ("artifacts", "create"): frozenset({"artifacts.create"}),
    ("storage", "plugin"): STATE_ACTIONS | STORAGE_ACTIONS,
    ("storage", "workspace"): STATE_ACTIONS | STORAGE_ACTIONS,
    ("storage", "binding"): STATE_ACTIONS | STORAGE_ACTIONS,
}
FILLS: Mapping[tuple[str, str], str] = {
    ("knowledge_bases", "list"): "resources.knowledge_bases",
    ("files", "config"): "resources.files",
    ("files", "knowledge"): "resources.files",
}
"""Permissions that open no call of their own but put something into the run's resources."""


class BindingPolicy(Value, frozen=True):
    """What an agent's owner allows its runner. `None` means: whatever the runner asks for of that kind."""

    history: bool = True
    state_scopes: frozenset[str] = frozenset({"conversation", "actor", "runner"})
    storage_areas: frozenset[str] = frozenset({"plugin"})


class RunScope(Value, frozen=True):
    """Where a run happens and for whom."""

    run_id: str
    workspace_id: str
    user_id: str
    agent_id: str
    conversation_id: str
    thread_id: str | None = None
    actor_type: str = "user"
    actor_id: str | None = None
    """Who caused the event; the user when None."""
    subject_type: str | None = None
    subject_id: str | None = None
    """What the event is about, when that has an identity of its own; a message has none."""


Operations = Mapping[str, frozenset[str]]
"""Resource to the operations that are granted on it. Empty operations mean none."""
NO_RESOURCES: Operations = MappingProxyType({})


class Grant(Value, frozen=True):
    """The proof a host call needs. Computed once per run, stored with it, dead with it."""

    scope: RunScope
    runner_id: str
    actions: frozenset[str]
    state_scopes: frozenset[str]
    storage_areas: frozenset[str]
    deadline_at: float
    models: Operations = NO_RESOURCES
    tools: Operations = NO_RESOURCES
    knowledge_bases: Operations = NO_RESOURCES
    files: frozenset[str] = frozenset()
    """Artifacts that came with the agent's settings or its knowledge bases."""
    history_scope: Literal["conversation", "workspace"] = "conversation"
    platform_actions: frozenset[str] = frozenset()

    def summary(self) -> dict[str, Any]:
        """What is stored with the run, for whoever asks later why something was allowed."""
        return {
            "actions": sorted(self.actions),
            "state_scopes": sorted(self.state_scopes),
            "storage_areas": sorted(self.storage_areas),
        }


_encode = msgspec.json.Encoder().encode


class Allowance(Value, frozen=True):
    """The part of a grant that is the same for every run of an agent: manifest cut by the binding's policy."""

    runner_id: str
    actions: frozenset[str]
    state_scopes: frozenset[str]
    storage_areas: frozenset[str]

    def for_run(self, scope: RunScope, *, deadline_at: float) -> Grant:
        return Grant(scope, self.runner_id, self.actions, self.state_scopes, self.storage_areas, deadline_at)


def allowance(manifest: AgentRunnerManifest, policy: BindingPolicy, offered: frozenset[str]) -> Allowance:
    """Cut what the runner asks for down to what its agent's owner allows and this host offers."""
    asked = manifest.permissions
    areas = frozenset(asked.storage) & policy.storage_areas
    scopes = policy.state_scopes if asked.storage else frozenset[str]()
    actions = {action for kind, literal in OPENS if literal in getattr(asked, kind) for action in OPENS[kind, literal]}
    if not policy.history:
        actions -= {"history.page", "history.search"}
    if not manifest.context.supports_history_pull:
        actions -= {"history.page"}
    if not manifest.context.supports_history_search:
        actions -= {"history.search"}
    if not scopes:
        actions -= STATE_ACTIONS
    if not areas:
        actions -= STORAGE_ACTIONS
    return Allowance(manifest.id, frozenset(actions) & offered, frozenset(scopes), areas)


def state_key(scope: str, grant: Grant) -> str | None:
    """Where a scope's values live: opaque, and different for every workspace, agent, runner and identity.

    None when the run has no identity for that scope (a message has no subject of its own).
    """
    at = grant.scope
    identities: Mapping[str, Mapping[str, str | None]] = {
        "conversation": {"conversation_id": at.conversation_id, "thread_id": at.thread_id},
        "actor": {"actor_type": at.actor_type, "actor_id": at.actor_id or at.user_id},
        "runner": {},
        "binding": {},
    }
    subject = {"subject_type": at.subject_type, "subject_id": at.subject_id} if at.subject_id else None
    identity = subject if scope == "subject" else identities.get(scope)
    if identity is None:
        return None
    whole = {
        "version": 1,
        "scope": scope,
        "workspace_id": at.workspace_id,
        "agent_id": at.agent_id,
        "runner_id": grant.runner_id,
        **identity,
    }
    return f"{scope}:{sha256(_encode(whole)).hexdigest()}"
