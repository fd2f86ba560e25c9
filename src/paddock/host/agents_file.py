"""`agents.yaml`: which agents there are. What is wrong with it is said in one sentence that names the line."""

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, cast

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import ErrorDetails

from paddock.host.agents import AgentBinding, Agents
from paddock.rules.permissions import STATE_SCOPES, BindingPolicy
from paddock_sdk.protocol.ids import RunnerId

NAME = re.compile(r"\w[\w.-]{0,63}")

BUILT_IN = """\
default_agent: echo
agents:
  echo:
    runner: plugin:paddock/echo/default
    description: Says back what you say, word by word.
"""


class AgentsFileError(Exception):
    """The file cannot be used; the text says where and why."""


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
    platform_actions: list[str] = Field(default=[])

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
        policy = BindingPolicy(
            self.history, frozenset(self.state_scopes), frozenset(self.storage), frozenset(self.platform_actions)
        )
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

    @field_validator("agents")
    @classmethod
    def _have_names(cls, value: dict[str, _Agent]) -> dict[str, _Agent]:
        wrong = next((name for name in value if not NAME.fullmatch(name)), None)
        if wrong is not None:
            raise ValueError(f"{wrong!r} is no name for an agent; use letters, digits, '.', '_' and '-', at most 64")
        return value


def load_agents(path: Path | None, *, max_queue: int = 100) -> Agents:
    """Read `agents.yaml`; without one, the built-in echo agent answers."""
    if path is None:
        return parse_agents(BUILT_IN, "built-in agents", max_queue=max_queue)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise AgentsFileError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise AgentsFileError(f"{path}: is not UTF-8 text") from error
    return parse_agents(text, str(path), max_queue=max_queue)


def parse_agents(text: str, where: str, *, max_queue: int = 100) -> Agents:
    """Agents from the text of a file. Raises AgentsFileError with one sentence that names the line."""
    tree = _tree(text, where)
    try:
        read = _AgentsFile.model_validate(yaml.safe_load(text))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        problem = f"{where}, line {_line_of(tree, first['loc'])}: {place} {_in_words(first)}"
        raise AgentsFileError(problem) from error
    default = read.default_agent
    if default is not None and default not in read.agents:
        line = _line_of(tree, ("default_agent",))
        raise AgentsFileError(
            f"{where}, line {line}: default_agent {default!r} is not one of: {', '.join(read.agents)}"
        )
    bindings = [agent.bound_as(name) for name, agent in read.agents.items()]
    return Agents(bindings, default or bindings[0].agent_id, max_queue=max_queue)


def _in_words(error: ErrorDetails) -> str:
    """What is wrong, for a person; the place is said before it."""
    match error["type"]:
        case "missing":
            return "is missing"
        case "extra_forbidden":
            return f"is no key of this file{_meant(error['loc'])}"
        case "model_type" | "dict_type" | "model_attributes_type":
            return "must be a mapping of names to values"
        case "value_error":
            return f"is wrong: {error['msg'].removeprefix('Value error, ')}"
        case _:
            return f"is wrong: {error['msg'][:1].lower()}{error['msg'][1:]}"


def _meant(place: tuple[int | str, ...]) -> str:
    model = _Agent if len(place) > 1 else _AgentsFile
    known = list(model.model_fields)
    close = get_close_matches(str(place[-1] if place else ""), known, n=1)
    return f"; did you mean {close[0]}?" if close else f"; known are: {', '.join(known)}"


def _tree(text: str, where: str) -> yaml.Node | None:
    """The file with its line numbers; a name that stands twice in one mapping is refused."""
    try:
        tree = cast("yaml.Node | None", yaml.compose(text, Loader=yaml.SafeLoader))  # pyright: ignore[reportUnknownMemberType]
    except yaml.YAMLError as error:
        raise AgentsFileError(f"{where}: not valid YAML: {' '.join(str(error).split())}") from error
    for mapping in _mappings(tree):
        seen: dict[str, int] = {}
        for key, _ in mapping.value:
            line: int = key.start_mark.line + 1
            if key.value in seen:
                raise AgentsFileError(
                    f"{where}, line {line}: {key.value} stands twice; first in line {seen[key.value]}"
                )
            seen[key.value] = line
    return tree


def _mappings(node: yaml.Node | None) -> Iterator[yaml.MappingNode]:
    if isinstance(node, yaml.MappingNode):
        yield node
        for _, value in node.value:
            yield from _mappings(value)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            yield from _mappings(value)


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
