"""The agents of this host: named bindings of a runner, its config and its policies."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from paddock.rules.permissions import BindingPolicy
from paddock.rules.session import messages

NONE_OFFERED: Mapping[str, str] = {}


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


class Agents:
    """The agents in force now: those the file names, and runners that may be addressed by their own name.

    `offers` gives the latter, name to runner id, as a new mapping whenever it changes. A name in the file wins.
    """

    def __init__(
        self,
        bindings: Sequence[AgentBinding],
        default_agent_id: str | None,
        *,
        max_queue: int = 100,
        offers: Callable[[], Mapping[str, str]] = lambda: NONE_OFFERED,
    ) -> None:
        self._named = {binding.agent_id: binding for binding in bindings}
        self._default = default_agent_id
        self._max_queue = max_queue
        self._offers = offers
        self._seen: Mapping[str, str] | None = None
        self._all: dict[str, AgentBinding] = {}
        self._for_session = messages.Agents(None, {})

    def known(self, agent_id: str) -> bool:
        return agent_id in self._in_force()

    def get(self, agent_id: str) -> AgentBinding | None:
        return self._in_force().get(agent_id)

    def list(self) -> list[AgentBinding]:
        return list(self._in_force().values())

    @property
    def for_session(self) -> messages.Agents:
        """What the session machine needs to know of them, as one value."""
        self._in_force()
        return self._for_session

    @property
    def default_agent_id(self) -> str | None:
        return self._default

    def offer(self, offers: Callable[[], Mapping[str, str]]) -> None:
        """Let runners be addressed by their own names."""
        self._offers, self._seen = offers, None

    def _in_force(self) -> Mapping[str, AgentBinding]:
        offers = self._offers()
        if self._seen is None or offers is not self._seen:
            self._seen = offers
            own = {name: AgentBinding(name, runner_id, name) for name, runner_id in offers.items()}
            self._all = own | self._named
            busy = {agent_id: binding.while_busy for agent_id, binding in self._all.items()}
            self._for_session = messages.Agents(self._default, busy, self._max_queue)
        return self._all
