"""Permissions of one run: manifest, binding and scope cut down to a `Grant`, frozen when the run starts. Pure.

The table below is the only place that says which permission opens which host call. A call that no permission opens
cannot be granted, and a permission that opens nothing fails a test.
"""

from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from types import MappingProxyType
from typing import Any, Literal

import msgspec

from paddock.rules.agents.resources import (
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
from paddock.rules.people.model_usage import Payer
from paddock.rules.values import Value
from paddock_sdk.protocol.manifest import AgentRunnerManifest, AgentRunnerPermissions

StateScope = Literal["conversation", "actor", "subject", "runner", "binding"]
STATE_SCOPES: tuple[StateScope, ...] = ("conversation", "actor", "subject", "runner", "binding")

STATE_ACTIONS = frozenset({"state.get", "state.set", "state.delete"})
STORAGE_ACTIONS = frozenset({"storage.get", "storage.set", "storage.delete", "storage.list"})
STEERING_ACTIONS = frozenset({"steering.pull"})
"""Opened by the capability: it is the run's own input, so there is nothing to permit."""
PLATFORM_ACTIONS = frozenset({"platform.request_action"})
"""Opened by any name in `permissions.platform_api`; which action may be asked for is checked by name."""
ABOVE_CEILING = "paddock.above_ceiling"
"""Where a manifest's metadata say what it asked for and the plugin file did not allow."""

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
GIVES: Mapping[tuple[str, str], str] = {("mcp", "use"): "mcp", ("working_directory", "use"): "working_directory"}
"""Permissions that give the run something around itself: the member of its grant that says so."""


class BindingPolicy(Value, frozen=True):
    """Limits that an agent's owner sets for its runner; they only take away from what the runner asks for.

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
    """What it may ask the platform to do, once the user approves: nothing unless it is said."""
    files: tuple[OfferedFile, ...] = ()
    """Those that came with the agent's settings."""
    run_endpoint: bool = True
    """Whether its runs may reach their grant over MCP; it opens nothing the grant does not."""


class RunScope(Value, frozen=True):
    """The run's workspace, user, agent and conversation."""

    run_id: str
    workspace_id: str
    user_id: str
    agent_id: str
    conversation_id: str
    subthread_id: str | None = None
    """The platform's thread inside the conversation."""
    actor_type: str = "user"
    actor_id: str | None = None
    """Who caused the event; the user when None."""
    subject_type: str | None = None
    subject_id: str | None = None
    """What the event is about, when that has an identity of its own; a message has none."""
    platform: str | None = None
    """The platform it came from and can be asked to act on; none for the host's own doors."""

    @property
    def payer(self) -> Payer:
        return Payer(self.workspace_id, self.user_id, self.agent_id, self.run_id, self.conversation_id)


NO_RESOURCES: Operations = MappingProxyType({})
NOTHING_REFUSED: Mapping[str, str] = MappingProxyType({})


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
    refused: Mapping[str, str] = NOTHING_REFUSED
    """Calls it was not granted, with the layer that said no; where none is named, the manifest did not ask."""
    mcp: bool = False
    """Whether it has an MCP endpoint of its own."""
    working_directory: bool = False

    def summary(self) -> dict[str, Any]:
        """Return the grant as it is stored with the run, for later explanations."""
        return _summary(self)


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
    refused: Mapping[str, str] = NOTHING_REFUSED
    mcp: bool = False
    working_directory: bool = False

    def summary(self) -> dict[str, Any]:
        """Return what every run of the agent is granted, in the shape of `Grant.summary`."""
        return _summary(self)

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
            self.refused,
            self.mcp,
            self.working_directory,
        )


def _summary(granted: "Grant | Allowance") -> dict[str, Any]:
    told: dict[str, Any] = {
        "actions": sorted(granted.actions),
        "state_scopes": sorted(granted.state_scopes),
        "storage_areas": sorted(granted.storage_areas),
    }
    if granted.history_scope != "conversation":
        told["history_scope"] = granted.history_scope
    for name in ("mcp", "working_directory"):
        if getattr(granted, name):
            told[name] = True
    for name in ("files", "platform_actions"):
        if getattr(granted, name):
            told[name] = sorted(getattr(granted, name))
    for name in ("models", "tools", "knowledge_bases"):
        if resources := getattr(granted, name):
            told[name] = {each: sorted(operations) for each, operations in resources.items()}
    return told | ({"refused": dict(granted.refused)} if granted.refused else {})


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
    wanted = opened_by(asked) | (STEERING_ACTIONS if manifest.capabilities.steering else frozenset[str]())
    actions = set(wanted - _closed(manifest, policy)) & offered
    if not platform:
        actions -= PLATFORM_ACTIONS
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
        platform_actions=platform if actions >= PLATFORM_ACTIONS else frozenset(),
        refused=refusals(manifest, wanted, offered, frozenset(actions)),
        mcp="use" in asked.mcp and policy.run_endpoint,
        working_directory="use" in asked.working_directory,
    )


def _closed(manifest: AgentRunnerManifest, policy: BindingPolicy) -> frozenset[str]:
    """Calls that the owner closes, or that the runner says it does not use."""
    closed: set[str] = set()
    if not policy.history:
        closed |= OPENS["history", "page"] | OPENS["history", "search"]
    if not policy.event_log:
        closed |= OPENS["events", "get"] | OPENS["events", "page"]
    for literal in ("metadata", "read", "create"):
        if literal not in policy.artifacts:
            closed |= OPENS.get(("artifacts", literal), frozenset())
    return _unused(manifest).union(closed)


def _unused(manifest: AgentRunnerManifest) -> frozenset[str]:
    """Calls that the runner says it does not use."""
    uses = manifest.context
    unused: set[str] = set()
    if not uses.supports_history_pull:
        unused |= OPENS["history", "page"]
    if not uses.supports_history_search:
        unused |= OPENS["history", "search"]
    if not uses.supports_artifact_pull:
        unused |= OPENS["artifacts", "metadata"] | OPENS["artifacts", "read"]
    return frozenset(unused)


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


def opened_by(asked: AgentRunnerPermissions) -> frozenset[str]:
    """The calls that these permissions open when nobody else objects."""
    opened = {action for kind, literal in OPENS if literal in getattr(asked, kind) for action in OPENS[kind, literal]}
    return frozenset(opened | PLATFORM_ACTIONS if asked.platform_api else opened)


def refusals(
    manifest: AgentRunnerManifest, wanted: frozenset[str], offered: frozenset[str], granted: frozenset[str]
) -> Mapping[str, str]:
    """Map each call that was asked for and not granted to the layer that refused it: plugin file, host or owner."""
    cut = manifest.metadata.get(ABOVE_CEILING)
    above = opened_by(AgentRunnerPermissions.model_validate(cut)) - wanted if cut else frozenset[str]()
    found = dict.fromkeys(sorted(above), "plugin_file")
    for action in sorted(wanted - granted):
        found[action] = _refuser(action, manifest, offered)
    return found


def _refuser(action: str, manifest: AgentRunnerManifest, offered: frozenset[str]) -> str:
    if action in _unused(manifest):
        return "manifest"
    return "agent" if action in offered else "host"


def state_key(scope: str, grant: Grant) -> str | None:
    """Return the key under which a scope's values live: opaque, different per workspace, agent, runner and identity.

    None when the run has no identity for that scope (a message has no subject of its own).
    """
    at = grant.scope
    match scope:
        case "conversation":
            identity = (("conversation_id", at.conversation_id), ("thread_id", at.subthread_id))
        case "actor":
            identity = (("actor_type", at.actor_type), ("actor_id", at.actor_id or at.user_id))
        case "subject" if at.subject_id:
            identity = (("subject_type", at.subject_type), ("subject_id", at.subject_id))
        case "runner" | "binding":
            identity = ()
        case _:
            return None
    return _state_key(scope, at.workspace_id, at.agent_id, grant.runner_id, identity)


@lru_cache(maxsize=512)
def _state_key(
    scope: str, workspace_id: str, agent_id: str, runner_id: str, identity: tuple[tuple[str, str | None], ...]
) -> str:
    whole = {
        "version": 1,
        "scope": scope,
        "workspace_id": workspace_id,
        "agent_id": agent_id,
        "runner_id": runner_id,
        **dict(identity),
    }
    return f"{scope}:{sha256(_encode(whole)).hexdigest()}"
