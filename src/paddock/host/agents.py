"""The agents of this host: named bindings of a runner, its config and its policies, read from `agents.yaml`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from paddock.rules.permissions import STATE_SCOPES, BindingPolicy
from paddock.rules.session import messages
from paddock_sdk.protocol.ids import RunnerId

BUILT_IN = """\
default_agent: echo
agents:
  echo:
    runner: plugin:paddock/echo/default
    description: Says back what you say, word by word.
"""


NONE_OFFERED: Mapping[str, str] = {}


class AgentsFileError(Exception):
    """The file cannot be used; the text says where and why."""


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


class _Agent(BaseModel):
    model_config = ConfigDict(extra="forbid")
    runner: str
    label: str | None = None
    description: str = ""
    config: dict[str, Any] = Field(default_factory=dict[str, Any])
    while_busy: Literal["queue", "steer", "interrupt", "reject"] = "queue"
    deadline_seconds: float | None = Field(default=None, gt=0, le=86_400)
    history: bool = True
    state_scopes: list[str] = Field(default=["conversation", "actor", "runner"])
    storage: list[Literal["plugin", "workspace", "binding"]] = Field(default=["plugin"])

    @field_validator("runner")
    @classmethod
    def _is_a_runner_id(cls, value: str) -> str:
        RunnerId.parse(value)
        return value

    @field_validator("state_scopes")
    @classmethod
    def _are_scopes(cls, value: list[str]) -> list[str]:
        wrong = sorted(set(value) - set(STATE_SCOPES))
        if wrong:
            raise ValueError(f"unknown state scope {wrong[0]!r}; known are {', '.join(STATE_SCOPES)}")
        return value

    def bound_as(self, agent_id: str) -> AgentBinding:
        policy = BindingPolicy(self.history, frozenset(self.state_scopes), frozenset(self.storage))
        return AgentBinding(
            agent_id=agent_id,
            runner_id=self.runner,
            label=self.label or agent_id,
            description=self.description,
            config=self.config,
            while_busy=self.while_busy,
            deadline_seconds=self.deadline_seconds,
            policy=policy,
        )


class _AgentsFile(BaseModel):
    model_config = ConfigDict(extra="forbid")
    default_agent: str | None = None
    agents: dict[str, _Agent] = Field(min_length=1)


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


def load_agents(path: Path | None, *, max_queue: int = 100) -> Agents:
    """Read `agents.yaml`; without one, the built-in echo agent answers."""
    if path is None:
        return parse_agents(BUILT_IN, "built-in agents", max_queue=max_queue)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise AgentsFileError(f"{path}: cannot be read: {error.strerror}") from error
    return parse_agents(text, str(path), max_queue=max_queue)


def parse_agents(text: str, where: str, *, max_queue: int = 100) -> Agents:
    try:
        read = _AgentsFile.model_validate(yaml.safe_load(text))
    except yaml.YAMLError as error:
        raise AgentsFileError(f"{where}: not valid YAML: {' '.join(str(error).split())}") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        line = _line_of(_tree(text), first["loc"])
        raise AgentsFileError(f"{where}, line {line}: {place}: {first['msg']}") from error
    if read.default_agent is not None and read.default_agent not in read.agents:
        raise AgentsFileError(f"{where}: default_agent {read.default_agent!r} is not one of its agents")
    default = read.default_agent or next(iter(read.agents))
    return Agents([agent.bound_as(name) for name, agent in read.agents.items()], default, max_queue=max_queue)


def _tree(text: str) -> yaml.Node | None:
    return cast("yaml.Node | None", yaml.compose(text, Loader=yaml.SafeLoader))  # pyright: ignore[reportUnknownMemberType]


def _line_of(tree: yaml.Node | None, path: Sequence[str | int]) -> int:
    """The line of the deepest part of the path that the file really has."""
    node, line = tree, 1 if tree is None else tree.start_mark.line + 1
    for part in path:
        if isinstance(node, yaml.MappingNode):
            pairs: list[tuple[yaml.Node, yaml.Node]] = node.value
            found = next(((key, value) for key, value in pairs if key.value == str(part)), None)
            if found is None:
                break
            line, node = found[0].start_mark.line + 1, found[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line + 1
        else:
            break
    return line
