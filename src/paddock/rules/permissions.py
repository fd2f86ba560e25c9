"""What one run may do: manifest, binding and scope cut down to a `Grant`, frozen when the run starts. Pure.

The table below is the only place that says which permission opens which host call. A call that no permission opens
cannot be granted, and a permission that opens nothing fails a test.
"""

from collections.abc import Mapping
from hashlib import sha256
from types import MappingProxyType
from typing import Any, Literal

import msgspec

from paddock.rules.resources import (
    ALL,
    NOTHING_OFFERED,
    READ_ONLY,
    Choice,
    Offered,
    OfferedFile,
    Operations,
    operations_on,
    some,
)
from paddock.rules.values import Value
from paddock_sdk.protocol.manifest import AgentRunnerManifest, AgentRunnerPermissions

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
    """What an agent's owner allows its runner; it can only take away from what the runner asks for.

    The defaults are for an owner who said nothing: models, knowledge and tools that change nothing, yes; what acts in
    the world or reaches beyond the conversation, no.
    """

    history: bool = True
    state_scopes: frozenset[str] = frozenset({"conversation", "actor", "runner"})
    storage_areas: frozenset[str] = frozenset({"plugin"})
    models: Choice = ALL
    tools: Choice = READ_ONLY
    knowledge_bases: Choice = ALL
    event_log: bool = True
    artifacts: frozenset[str] = frozenset({"metadata", "read", "create"})
    history_scope: Literal["conversation", "workspace"] = "conversation"
    platform_actions: frozenset[str] = frozenset()
    files: tuple[OfferedFile, ...] = ()
    """Those that came with the agent's settings."""


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
    models: Operations = NO_RESOURCES
    tools: Operations = NO_RESOURCES
    knowledge_bases: Operations = NO_RESOURCES
    files: frozenset[str] = frozenset()
    history_scope: Literal["conversation", "workspace"] = "conversation"
    platform_actions: frozenset[str] = frozenset()

    def for_run(self, scope: RunScope, *, deadline_at: float) -> Grant:
        return Grant(
            scope,
            self.runner_id,
            self.actions,
            self.state_scopes,
            self.storage_areas,
            deadline_at,
            self.models,
            self.tools,
            self.knowledge_bases,
            self.files,
            self.history_scope,
            self.platform_actions,
        )


def allowance(
    manifest: AgentRunnerManifest,
    policy: BindingPolicy,
    offered: frozenset[str],
    there: Offered = NOTHING_OFFERED,
) -> Allowance:
    """Cut what the runner asks for down to what its owner allows, the host does (`offered`) and has (`there`)."""
    asked = manifest.permissions
    areas = frozenset(asked.storage) & policy.storage_areas
    scopes = policy.state_scopes if asked.storage else frozenset[str]()
    platform = frozenset(asked.platform_api) & policy.platform_actions
    actions = {action for kind, literal in OPENS if literal in getattr(asked, kind) for action in OPENS[kind, literal]}
    if platform:
        actions.add("platform.request_action")
    actions = (actions - _closed(manifest, policy)) & offered
    if not scopes:
        actions -= STATE_ACTIONS
    if not areas:
        actions -= STORAGE_ACTIONS
    bases = some({base.kb_id: _on_base(base.kb_id, asked, policy, offered) for base in there.bases})
    both = asked.history_scope == policy.history_scope == "workspace"
    return Allowance(
        runner_id=manifest.id,
        actions=frozenset(actions),
        state_scopes=frozenset(scopes),
        storage_areas=areas,
        models=_models(asked, policy, offered, there),
        tools=_tools(asked, policy, offered, there),
        knowledge_bases=bases,
        files=frozenset(file.file_id for file in granted_files(asked, policy, there, bases)),
        history_scope="workspace" if both else "conversation",
        platform_actions=platform if "platform.request_action" in actions else frozenset(),
    )


def _closed(manifest: AgentRunnerManifest, policy: BindingPolicy) -> set[str]:
    """Calls that the owner closes, or that the runner says it does not use."""
    uses = manifest.context
    closed: set[str] = set()
    if not policy.history or not uses.supports_history_pull:
        closed |= OPENS["history", "page"]
    if not policy.history or not uses.supports_history_search:
        closed |= OPENS["history", "search"]
    if not policy.event_log:
        closed |= OPENS["events", "get"] | OPENS["events", "page"]
    for literal in ("metadata", "read", "create"):
        if literal not in policy.artifacts or (literal != "create" and not uses.supports_artifact_pull):
            closed |= OPENS.get(("artifacts", literal), frozenset())
    return closed


def _can(kind: str, asked: list[Any], offered: frozenset[str]) -> frozenset[str]:
    """The asked operations of one kind that this host does."""
    return frozenset(literal for literal in asked if OPENS[kind, literal] <= offered)


def _models(
    asked: AgentRunnerPermissions, policy: BindingPolicy, offered: frozenset[str], there: Offered
) -> Operations:
    can = _can("models", list(asked.models), offered)
    return some(
        {model.model_id: operations_on(model.model_id, policy.models, can & model.operations) for model in there.models}
    )


def _tools(asked: AgentRunnerPermissions, policy: BindingPolicy, offered: frozenset[str], there: Offered) -> Operations:
    can = _can("tools", list(asked.tools), offered)
    return some(
        {tool.name: operations_on(tool.name, policy.tools, can, read_only=tool.read_only) for tool in there.tools}
    )


def _on_base(
    kb_id: str, asked: AgentRunnerPermissions, policy: BindingPolicy, offered: frozenset[str]
) -> frozenset[str]:
    can = {one for one in asked.knowledge_bases if OPENS.get(("knowledge_bases", one), frozenset()) <= offered}
    return operations_on(kb_id, policy.knowledge_bases, frozenset(can))


def granted_files(
    asked: AgentRunnerPermissions, policy: BindingPolicy, there: Offered, bases: Operations
) -> list[OfferedFile]:
    """The files of the agent's settings, and those of the knowledge bases it got, each if the runner asks for them."""
    own = policy.files if "config" in asked.files else ()
    known = [file for file in there.files if file.kb_id in bases] if "knowledge" in asked.files else []
    return [*own, *known]


def state_key(scope: str, grant: Grant) -> str | None:
    """Where a scope's values live: opaque, and different for every workspace, agent, runner and identity.

    None when the run has no identity for that scope (a message has no subject of its own).
    """
    at = grant.scope
    identities: Mapping[str, Mapping[str, str | None]] = {
        "conversation": {"conversation_id": at.conversation_id, "thread_id": at.thread_id},
        "actor": {"actor_type": "user", "actor_id": at.user_id},
        "runner": {},
        "binding": {},
    }
    identity = identities.get(scope)
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
