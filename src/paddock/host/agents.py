"""The agents of this host: named bindings of a runner, its config and its policies."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from paddock.rules.permissions import BindingPolicy
from paddock.rules.session import messages

NONE_OFFERED: Mapping[str, str] = {}
MAX_WORKSPACES = 1024
"""Workspaces remembered at once; the others are put together again when they speak."""


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


@dataclass(frozen=True, slots=True)
class _InForce:
    """The agents of one workspace, until what is offered to it changes."""

    offers: Mapping[str, str]
    bindings: Mapping[str, AgentBinding]
    for_session: messages.Agents


class Agents:
    """The agents in force now: those the file names, and runners that may be addressed by their own name.

    `offers` gives the latter for a workspace, name to runner id, as a new mapping whenever it changes. A name in the
    file wins.
    """

    def __init__(
        self,
        bindings: Sequence[AgentBinding],
        default_agent_id: str | None,
        *,
        max_queue: int = 100,
        offers: Callable[[str], Mapping[str, str]] = lambda _workspace: NONE_OFFERED,
    ) -> None:
        self.default_agent_id = default_agent_id
        self._named = {binding.agent_id: binding for binding in bindings}
        self._max_queue = max_queue
        self._offers = offers
        self._in_force: dict[str, _InForce] = {}

    def known(self, agent_id: str, workspace: str) -> bool:
        return agent_id in self._of(workspace).bindings

    def get(self, agent_id: str, workspace: str) -> AgentBinding | None:
        return self._of(workspace).bindings.get(agent_id)

    def list(self, workspace: str) -> list[AgentBinding]:
        return list(self._of(workspace).bindings.values())

    def for_session(self, workspace: str) -> messages.Agents:
        """What the session machine needs to know of them, as one value."""
        return self._of(workspace).for_session

    def offer(self, offers: Callable[[str], Mapping[str, str]]) -> None:
        """Let runners be addressed by their own names."""
        self._offers = offers
        self._in_force.clear()

    def _of(self, workspace: str) -> _InForce:
        offers = self._offers(workspace)
        known = self._in_force.get(workspace)
        if known is None or known.offers is not offers:
            if len(self._in_force) >= MAX_WORKSPACES:
                self._in_force.clear()
            known = self._in_force[workspace] = self._put_together(offers)
        return known

    def _put_together(self, offers: Mapping[str, str]) -> _InForce:
        own = {name: AgentBinding(name, runner_id, name) for name, runner_id in offers.items()}
        bindings = own | self._named
        busy = {agent_id: binding.while_busy for agent_id, binding in bindings.items()}
        return _InForce(offers, bindings, messages.Agents(self.default_agent_id, busy, self._max_queue))
