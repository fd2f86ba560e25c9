"""Permissions of one run: manifest, binding and scope cut down to a `Grant`, frozen when the run starts. Pure.

Which permission opens which host call is said in the protocol's table of host calls. A permission that opens nothing
fails a test.
"""

from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from types import MappingProxyType
from typing import Any, get_args

import msgspec
from msgspec import field

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
from paddock.rules.people import Payer
from paddock.rules.values import Value
from paddock_sdk.protocol.host_calls import HOST_CALLS, METHODS
from paddock_sdk.protocol.manifest import AgentRunnerManifest, AgentRunnerPermissions, ArtifactOperation, HistoryScope

STATE_ACTIONS = frozenset(method for method in METHODS if method.startswith("state."))
STORAGE_ACTIONS = frozenset(method for method in METHODS if method.startswith("storage."))
STEERING_ACTIONS = frozenset({"steering.pull"})
"""Opened by the capability: it is the run's own input, so there is nothing to permit."""
PLATFORM_ACTIONS = frozenset({"platform.request_action"})
"""Opened by any name in `permissions.platform_api`; which action may be asked for is checked by name."""
ABOVE_CEILING = "paddock.above_ceiling"
"""Where a manifest's metadata say what it asked for and the plugin file did not allow."""


def _opens() -> dict[tuple[str, str], frozenset[str]]:
    found: dict[tuple[str, str], frozenset[str]] = {}
    for method, call in HOST_CALLS.items():
        for permission in call.permissions:
            found[permission] = found.get(permission, frozenset()) | {method}
    return found


OPENS: Mapping[tuple[str, str], frozenset[str]] = _opens()
"""The host calls that each permission opens."""
FILLS: Mapping[tuple[str, str], str] = {
    ("knowledge_bases", "list"): "resources.knowledge_bases",
    ("files", "config"): "resources.files",
    ("files", "knowledge"): "resources.files",
}
"""Permissions that open no call of their own but put something into the run's resources."""
USES: Mapping[str, str] = {
    **dict.fromkeys(OPENS["history", "page"], "supports_history_pull"),
    **dict.fromkeys(OPENS["history", "search"], "supports_history_search"),
    **dict.fromkeys(OPENS["artifacts", "metadata"] | OPENS["artifacts", "read"], "supports_artifact_pull"),
}
"""Calls that a runner may say it does not use, and where its manifest's context says so."""
GIVES: Mapping[tuple[str, str], str] = {("mcp", "use"): "mcp", ("working_directory", "use"): "working_directory"}
"""Permissions that give the run something around itself: the member of its grant that says so."""


USUAL_SCOPES = ("conversation", "actor", "runner")
"""The scopes of state that an agent has unless its owner says otherwise."""


class BindingPolicy(Value, frozen=True):
    """Limits that an agent's owner sets for its runner; they only take away from what the runner asks for.

    The defaults are for an owner who said nothing: models, knowledge and tools that change nothing, yes; what acts in
    the world or reaches beyond the conversation, no.
    """

    history: bool = True
    state_scopes: frozenset[str] = frozenset(USUAL_SCOPES)
    storage_areas: frozenset[str] = frozenset({"plugin"})
    models: Choice = ALL
    tools: Choice = READ_ONLY
    knowledge_bases: Choice = ALL
    event_log: bool = True
    artifacts: frozenset[str] = frozenset(get_args(ArtifactOperation))
    history_scope: HistoryScope = "conversation"
    platform_actions: frozenset[str] = frozenset()
    """What it may ask the platform to do, once the user approves: nothing unless it is said."""
    files: tuple[OfferedFile, ...] = ()
    """Those that came with the agent's settings."""
    run_endpoint: bool = True
    """Whether its runs may reach their grant over MCP; it opens nothing the grant does not."""


class RunScope(Value, frozen=True):
    """The run's workspace, user, agent and session."""

    run_id: str
    workspace_id: str
    user_id: str
    agent_id: str
    session_id: str = field(name="conversation_id")
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
    surface: str | None = None
    """The platform where the answers go, also when another agent handed over what was asked there."""
    named: bool = True
    """Whether it is known who caused the event: on a platform only where it says so."""

    @property
    def payer(self) -> Payer:
        return Payer(self.workspace_id, self.user_id, self.agent_id, self.run_id, self.session_id)


NO_RESOURCES: Operations = MappingProxyType({})
NOTHING_REFUSED: Mapping[str, str] = MappingProxyType({})


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
    """Artifacts that came with the agent's settings or its knowledge bases."""
    history_scope: HistoryScope = "conversation"
    platform_actions: frozenset[str] = frozenset()
    refused: Mapping[str, str] = NOTHING_REFUSED
    """Calls that are not granted, with the layer that said no; where none is named, the manifest did not ask."""
    mcp: bool = False
    """Whether runs have an MCP endpoint of their own."""
    working_directory: bool = False

    def for_run(self, scope: RunScope, *, deadline_at: float) -> "Grant":
        return Grant(*msgspec.structs.astuple(self), scope=scope, deadline_at=deadline_at)

    def summary(self) -> dict[str, Any]:
        """Return what is granted as it is stored with each run, for later explanations."""
        told: dict[str, Any] = {
            "actions": sorted(self.actions),
            "state_scopes": sorted(self.state_scopes),
            "storage_areas": sorted(self.storage_areas),
        }
        if self.history_scope != "conversation":
            told["history_scope"] = self.history_scope
        for name in ("mcp", "working_directory"):
            if getattr(self, name):
                told[name] = True
        for name in ("files", "platform_actions"):
            if getattr(self, name):
                told[name] = sorted(getattr(self, name))
        for name in ("models", "tools", "knowledge_bases"):
            if resources := getattr(self, name):
                told[name] = {each: sorted(operations) for each, operations in resources.items()}
        return told | ({"refused": dict(self.refused)} if self.refused else {})


class Grant(Allowance, frozen=True, kw_only=True):
    """The proof a host call needs: an allowance, given to one run. Stored with the run, dead with it."""

    scope: RunScope
    deadline_at: float


_encode = msgspec.json.Encoder().encode


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
    closed: set[str] = set()
    if not policy.history:
        closed |= OPENS["history", "page"] | OPENS["history", "search"]
    if not policy.event_log:
        closed |= OPENS["events", "get"] | OPENS["events", "page"]
    for operation in get_args(ArtifactOperation):
        if operation not in policy.artifacts:
            closed |= OPENS["artifacts", operation]
    return _unused(manifest).union(closed)


def _unused(manifest: AgentRunnerManifest) -> frozenset[str]:
    return frozenset(call for call, use in USES.items() if not getattr(manifest.context, use))


def _can(kind: str, asked: list[Any], offered: frozenset[str]) -> frozenset[str]:
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
            identity = (("conversation_id", at.session_id), ("thread_id", at.subthread_id))
        case "actor":
            identity = _identity_of_actor(at)
        case "subject" if at.subject_id:
            identity = (("subject_type", at.subject_type), ("subject_id", at.subject_id), *_named_by(at))
        case "runner" | "binding":
            identity = ()
        case _:
            return None
    return scope_key(scope, at.workspace_id, at.agent_id, grant.runner_id, identity)


Identity = tuple[tuple[str, str | None], ...]


def _identity_of_actor(at: RunScope) -> Identity:
    """Return who the actor is beyond all doubt: ids are names within the platform, or the workspace, that gave them.

    A user of the workspace is the same at all doors of the host. Another agent or a schedule acts for one user. Where a
    platform does not say who it was, everybody in that conversation may have been, and nobody elsewhere.
    """
    who = ("actor_type", at.actor_type), ("actor_id", at.actor_id or at.user_id)
    if at.surface is None:
        return who if at.actor_type == "user" else (*who, ("user_id", at.user_id))
    if at.named:
        return (*who, *_named_by(at))
    return ("conversation_id", at.session_id), ("thread_id", at.subthread_id)


def _named_by(at: RunScope) -> Identity:
    return () if at.surface is None else (("platform", at.surface),)


@lru_cache(maxsize=512)
def scope_key(scope: str, workspace_id: str, agent_id: str, runner_id: str, identity: Identity) -> str:
    """Return the key of one identity's values in one scope of one agent's runner."""
    whole = {
        "version": 1,
        "scope": scope,
        "workspace_id": workspace_id,
        "agent_id": agent_id,
        "runner_id": runner_id,
        **dict(identity),
    }
    return f"{scope}:{sha256(_encode(whole)).hexdigest()}"


UPLOADS = "upload:"


def plugin_of(runner_id: str) -> str:
    """author/name of a runner id `plugin:author/name/runner`."""
    return runner_id.removeprefix("plugin:").rsplit("/", 1)[0]


def area_key(area: str, grant: Grant) -> str | None:
    """Per workspace, and within it: one for each plugin, one for all, one for each agent. None for no known area."""
    at = grant.scope
    owners: Mapping[str, str] = {"plugin": plugin_of(grant.runner_id), "workspace": "", "binding": at.agent_id}
    owner = owners.get(area)
    if owner is None:
        return None
    whole = {"version": 1, "area": area, "workspace_id": at.workspace_id, "owner": owner}
    return f"{area}:{sha256(_encode(whole)).hexdigest()}"


def upload_area(area: str, grant: Grant) -> str:
    """Return the area where the parts of a value wait until it is whole; each run has its own."""
    return f"{UPLOADS}{grant.scope.run_id}:{area}"
