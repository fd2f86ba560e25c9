"""Agents written as a Python file: its `Agent` objects are the agents, its functions their tools.

The file is imported when the host starts, and again when it changed. What is wrong with it is one sentence that names
the place.
"""

import inspect
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from pydantic import ValidationError

from paddock.agent import Agent
from paddock.host.agents.agents import AgentBinding
from paddock.host.agents.file import AgentsFileError, Defined
from paddock.host.agents.shapes import AgentShape, in_words, name_problem
from paddock.models.demo import NAME as DEMO
from paddock.rules.agents.specs import ModelSpec, NamedResources
from paddock.tools.functions import FunctionTool, ToolDefinitionError, signature_of
from paddock.tools.loading import module_from

RUNNER = "plugin:paddock/local-agent/default"
BUILT_IN_TOOLS = ("calculate", "current_time", "calendar_read")
RUNNERS_TOOLS = ("remember", "search_history", "search_knowledge", "show")
"""What the local agent has by itself."""
PROVIDERS: Mapping[str, str] = {
    "gpt-": "openai",
    "o1": "openai",
    "o3": "openai",
    "o4": "openai",
    "claude-": "anthropic",
}
"""Models that can be named without being set up: by how their names begin."""


@dataclass(frozen=True, slots=True)
class Program:
    """The agents, tools and models that a file defines."""

    bindings: Sequence[AgentBinding]
    tools: Sequence[FunctionTool]
    models: Mapping[str, ModelSpec]

    @property
    def defined(self) -> Defined:
        """The program in the form of an agents file; the first agent is the default."""
        return Defined(self.bindings, self.bindings[0].agent_id, NamedResources(self.models))


def is_program(path: Path | None) -> bool:
    return path is not None and path.suffix == ".py"


def load_program(path: Path) -> Program:
    """Raises AgentsFileError."""
    module = _imported(path)
    found = _agents(module, path)
    tools = _tools(module, found.values(), path)
    bindings = [_binding(name, agent, _names(agent, tools), path) for name, agent in found.items()]
    models = {agent.model: spec for agent in found.values() if (spec := _spec(agent.model)) is not None}
    return Program(bindings, list(tools.values()), models)


def _imported(path: Path) -> ModuleType:
    try:
        return module_from(path)
    except ToolDefinitionError as error:
        raise AgentsFileError(str(error)) from error
    except (Exception, SystemExit) as error:  # it may do anything while it is imported, and must not end the host
        line = next(
            (at.lineno for at in reversed(traceback.extract_tb(error.__traceback__)) if at.filename == str(path)), 0
        )
        line = error.lineno or line if isinstance(error, SyntaxError) else line
        raise AgentsFileError(f"{path}, line {line}: {type(error).__name__}: {error}") from error


def _agents(module: ModuleType, path: Path) -> dict[str, Agent]:
    """By name; the first is the default."""
    found: dict[str, Agent] = {}
    for agent in vars(module).values():
        if not isinstance(agent, Agent) or agent in found.values():
            continue
        name = agent.name or path.stem.replace(" ", "_")
        if (
            problem := _wrong(agent)
            or name_problem(name)
            or (f"two agents are called {name!r}; give one a name" * (name in found))
        ):
            raise AgentsFileError(f"{path}: {problem}")
        found[name] = agent
    if not found:
        raise AgentsFileError(f'{path} defines no agent; write for example: agent = Agent("You are kind.")')
    return found


def _wrong(agent: Agent) -> str | None:
    """Return the first field with a wrong value, in words. A string is no list of names: it would be read by
    letters."""
    for field, what, fits in SHAPES:
        if not fits(value := getattr(agent, field)):
            return f"{field} must be {what}, not {value!r}"
    return None


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_list_of(kind: Callable[[object], bool], value: object) -> bool:
    return isinstance(value, list | tuple) and all(kind(one) for one in cast("Sequence[object]", value))


SHAPES: Sequence[tuple[str, str, Callable[[object], bool]]] = (
    ("instructions", "text", _is_text),
    ("name", "text", _is_text),
    ("model", "text", _is_text),
    ("tools", "a list of functions", lambda value: value is None or _is_list_of(inspect.isfunction, value)),
    ("approve", "a list of names", lambda value: _is_list_of(_is_text, value)),
    ("config", "a dict", lambda value: isinstance(value, Mapping)),
)


def _tools(module: ModuleType, agents: Any, path: Path) -> dict[str, FunctionTool]:
    given = [function for agent in agents for function in agent.tools or ()]
    own = [
        one
        for name, one in vars(module).items()
        if inspect.isfunction(one) and one.__module__ == module.__name__ and not name.startswith("_")
    ]
    every = [*given, *own] if any(agent.tools is None for agent in agents) else given
    return {function.__name__: _tool(function, path) for function in every}


def _tool(function: Callable[..., Any], path: Path) -> FunctionTool:
    try:
        return FunctionTool(function, signature_of(function, source=str(path)))
    except ToolDefinitionError as error:
        raise AgentsFileError(f"{path}: {error}") from error


def _names(agent: Agent, tools: Mapping[str, FunctionTool]) -> list[str]:
    return list(tools) if agent.tools is None else [function.__name__ for function in agent.tools]


def _binding(name: str, agent: Agent, tools: Sequence[str], path: Path) -> AgentBinding:
    offered = [*tools, *(one for one in BUILT_IN_TOOLS if one not in tools)]
    if strange := next((one for one in agent.approve if not _is_one_of(one, [*offered, *RUNNERS_TOOLS])), None):
        raise AgentsFileError(
            f"{path}: approve names {strange!r}, which is no tool of this agent; it has: {', '.join(offered)}"
        )
    config = {"model": agent.model, "approve": list(agent.approve), **agent.config}
    written = {
        "runner": RUNNER,
        "instructions": agent.instructions or None,
        "config": config,
        "tools": offered,
    }
    try:
        return AgentShape.model_validate(written).bound_as(name, base=path.absolute().parent)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise AgentsFileError(f"{path}: agent {name!r}: {place} {in_words(first)}") from error


def _is_one_of(pattern: str, names: Sequence[str]) -> bool:
    return pattern in names or (pattern.endswith("*") and any(name.startswith(pattern[:-1]) for name in names))


def _spec(model: str) -> ModelSpec | None:
    """A provider's model that can be asked for by its name; its key is looked up when it is used."""
    provider = next((provider for start, provider in PROVIDERS.items() if model.startswith(start)), None)
    if provider is None or model == DEMO:
        return None
    return ModelSpec.model_validate({"provider": provider, "model": model})
