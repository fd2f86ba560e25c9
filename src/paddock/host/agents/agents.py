"""Agents in force on this host: named bindings of a runner, its config and its policies."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from paddock.rules.access.permissions import BindingPolicy
from paddock.rules.agents.resources import NO_EXTRAS, AgentExtras, answering, answers
from paddock.rules.log.payloads import MESSAGE
from paddock.rules.session import messages

NONE_OFFERED: Mapping[str, str] = {}
MAX_WORKSPACES = 1024
"""Workspaces whose agents are remembered; the others are put together again when needed."""
MAX_EVENT_TYPES = 1024
MESSAGES_ONLY = (MESSAGE,)

RunnerNames = Callable[[str], Mapping[str, str]]
"""Returns the runners that a workspace may address by name, name to runner id: the same mapping until it changes."""

Origin = Literal["built-in", "file", "api", "runner"]
"""Where an agent is defined; `runner` is an agent made from a runner's own name."""


def no_runner_names(_workspace: str) -> Mapping[str, str]:
    return NONE_OFFERED


@dataclass(frozen=True, slots=True)
class AgentBinding:
    """One agent: which runner answers under this name, with which config, and what it may do."""

    agent_id: str
    runner_id: str
    label: str
    description: str = ""
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    while_busy: str = "queue"
    deadline_seconds: float | None = None
    policy: BindingPolicy = field(default_factory=BindingPolicy)
    events: tuple[str, ...] = MESSAGES_ONLY
    extras: AgentExtras = NO_EXTRAS
    isolation: str | None = None
    """The least isolation its runner must have."""
    origin: Origin = "file"
    base: Path | None = None
    """The directory of relative paths in its settings; None when its settings may name no files."""
    defined: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The definition as written; its config may hold secrets."""


@dataclass(frozen=True, slots=True)
class _InForce:
    """The agents of one workspace, valid until its runners change."""

    offers: Mapping[str, str]
    bindings: Mapping[str, AgentBinding]
    for_session: messages.Agents
    answering: dict[tuple[str, str | None], str] = field(default_factory=dict[tuple[str, str | None], str])
    """The agents that answer events, by event type and addressed agent: a cache."""


class Agents:
    """The agents in force now: from the agents file, from the API, and runners addressed by their own name.

    A name in the file wins over one of the API, and that over a runner's. Bindings never change: a caller that holds
    one keeps the old settings when the agent is changed.
    """

    def __init__(
        self,
        bindings: Sequence[AgentBinding],
        default_agent_id: str | None,
        *,
        max_queue: int = 100,
        offers: RunnerNames = no_runner_names,
    ) -> None:
        self.default_agent_id = default_agent_id
        self.problem: str | None = None
        """Why the present content of the agents file is not in force."""
        self._named = {binding.agent_id: binding for binding in bindings}
        self._stored: dict[str, dict[str, AgentBinding]] = {}
        self._max_queue = max_queue
        self._offers = offers
        self._in_force: dict[str, _InForce] = {}

    def known(self, agent_id: str, workspace: str) -> bool:
        return agent_id in self._of(workspace).bindings

    def get(self, agent_id: str, workspace: str) -> AgentBinding | None:
        return self._of(workspace).bindings.get(agent_id)

    def label_of(self, agent_id: str, workspace: str) -> str | None:
        binding = self.get(agent_id, workspace)
        return binding.label if binding is not None else None

    def list(self, workspace: str) -> list[AgentBinding]:
        return list(self._of(workspace).bindings.values())

    def for_session(self, workspace: str) -> messages.Agents:
        """The agents of a workspace as one value for the session machine."""
        return self._of(workspace).for_session

    def answering(self, event_type: str, workspace: str, addressed: str | None = None) -> str:
        """The one agent that answers events of this type. Raises HostError."""
        known = self._of(workspace)
        if (event_type, addressed) not in known.answering:
            if len(known.answering) >= MAX_EVENT_TYPES:
                known.answering.clear()
            known.answering[event_type, addressed] = self._look_up(event_type, known.bindings, addressed)
        return known.answering[event_type, addressed]

    def in_force(self, workspace: str) -> object:
        """An object that is replaced when the agents of a workspace change: compare by identity."""
        return self._of(workspace)

    def _look_up(self, event_type: str, bindings: Mapping[str, AgentBinding], addressed: str | None) -> str:
        asked = bindings.values() if addressed is None else [bindings[addressed]] if addressed in bindings else []
        return answering(event_type, {binding.agent_id: binding.events for binding in asked}, addressed)

    # --- changes

    def replace(self, bindings: Sequence[AgentBinding], default_agent_id: str | None) -> None:
        """Replace the agents of the file; bindings that did not change stay the same objects."""
        kept = self._named
        self._named = {one.agent_id: one if kept.get(one.agent_id) != one else kept[one.agent_id] for one in bindings}
        self.default_agent_id = default_agent_id
        self._in_force.clear()

    def store(self, workspace: str, binding: AgentBinding) -> None:
        """Put an agent of the API in force."""
        self._stored.setdefault(workspace, {})[binding.agent_id] = binding
        self._in_force.pop(workspace, None)

    def remove(self, workspace: str, agent_id: str) -> None:
        self._stored.get(workspace, {}).pop(agent_id, None)
        self._in_force.pop(workspace, None)

    def keep_stored(self, there: set[tuple[str, str]]) -> None:
        """Remove the agents of the API that are not among these pairs of workspace and name."""
        for workspace, known in self._stored.items():
            for agent_id in [name for name in known if (workspace, name) not in there]:
                self.remove(workspace, agent_id)

    def in_file(self, agent_id: str) -> bool:
        return agent_id in self._named

    def named_runners(self) -> set[str]:
        return {binding.runner_id for binding in self._named.values()}

    def stored(self, workspace: str) -> Mapping[str, AgentBinding]:
        return self._stored.get(workspace, {})

    def _of(self, workspace: str) -> _InForce:
        offers = self._offers(workspace)
        known = self._in_force.get(workspace)
        if known is None or known.offers is not offers:
            if len(self._in_force) >= MAX_WORKSPACES:
                self._in_force.clear()
            known = self._in_force[workspace] = self._put_together(workspace, offers)
        return known

    def _put_together(self, workspace: str, offers: Mapping[str, str]) -> _InForce:
        own = {name: AgentBinding(name, runner_id, name, origin="runner") for name, runner_id in offers.items()}
        bindings = own | self._stored.get(workspace, {}) | self._named
        busy = {agent_id: binding.while_busy for agent_id, binding in bindings.items()}
        return _InForce(offers, bindings, messages.Agents(self.default_agent_id, busy, self._max_queue))


def takes_messages(binding: AgentBinding) -> bool:
    return answers(binding.events, MESSAGE)
