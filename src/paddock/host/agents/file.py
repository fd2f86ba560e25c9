"""The agents file `agents.yaml`. An error in it is one sentence that names the line."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from paddock.host.agents.agents import AgentBinding, Agents, Origin, RunnerNames, no_runner_names, takes_messages
from paddock.host.agents.files import AgentFileError, AgentFiles
from paddock.host.agents.shapes import AgentShape, in_words, name_problem
from paddock.rules.agents.resources import OfferedFile
from paddock.rules.agents.specs import McpServerSpec, ModelSpec, NamedResources

BUILT_IN = """\
default_agent: assistant
agents:
  assistant:
    runner: plugin:paddock/local-agent/default
    label: Assistant
    description: Talks, calls tools and remembers, on the built-in demo model until it is given another.
    config: {model: demo}
  echo:
    runner: plugin:paddock/echo/default
    description: Says back what you say, word by word.
"""


WORK = "working_directory"


class AgentsFileError(Exception):
    """The agents file cannot be used; the text says where and why."""


class AgentsFile(BaseModel):
    """The whole agents file."""

    model_config = ConfigDict(extra="forbid", title="agents.yaml")
    default_agent: str | None = Field(
        default=None, description="Who answers when nobody is named; the first agent unless set."
    )
    agents: dict[str, AgentShape] = Field(min_length=1, description="The agents, by name.")
    models: dict[str, ModelSpec] = Field(
        default_factory=dict[str, ModelSpec], description="Models of providers, by the name agents use for them."
    )
    tools: list[str] = Field(
        default=[], max_length=100, description="Python files, beside this one, and modules whose functions are tools."
    )
    mcp_servers: dict[str, McpServerSpec] = Field(
        default_factory=dict[str, McpServerSpec], description="MCP servers whose tools agents may use, by name."
    )

    @field_validator("agents")
    @classmethod
    def _have_names(cls, value: dict[str, AgentShape]) -> dict[str, AgentShape]:
        wrong = next((problem for name in value if (problem := name_problem(name))), None)
        if wrong is not None:
            raise ValueError(wrong)
        return value

    @property
    def resources(self) -> NamedResources:
        return NamedResources(self.models, tuple(self.tools), self.mcp_servers)


SHAPES = {1: AgentsFile, 3: AgentShape}
"""The shapes under `agents`, by their depth in the file."""
OTHER_SHAPES: Mapping[str | int, type[BaseModel]] = {"models": ModelSpec, "mcp_servers": McpServerSpec}
"""The shapes under other keys."""
NOTHING_NAMED = NamedResources()


@dataclass(frozen=True, slots=True)
class Defined:
    """Content of an agents file."""

    bindings: Sequence[AgentBinding]
    default_agent_id: str
    resources: NamedResources = NOTHING_NAMED


def defined_in(path: Path | None, files: AgentFiles | None = None) -> Defined:
    """Read the agents file, or return the built-in agents without one. Raises AgentsFileError."""
    if path is None:
        return read_agents(BUILT_IN, "built-in agents", origin="built-in")
    return read_file(path, files)


def read_file(path: Path, files: AgentFiles | None = None) -> Defined:
    """Read the agents file; `files` keeps the files it names. Raises AgentsFileError."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise AgentsFileError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise AgentsFileError(f"{path}: is not UTF-8 text") from error
    return read_agents(text, str(path), base=path.absolute().parent, files=files)


def in_force(defined: Defined, max_queue: int, offers: RunnerNames = no_runner_names) -> Agents:
    return Agents(defined.bindings, defined.default_agent_id, max_queue=max_queue, offers=offers)


def read_agents(
    text: str,
    where: str,
    *,
    origin: Origin = "file",
    base: Path | None = None,
    files: AgentFiles | None = None,
) -> Defined:
    """Parse the text of an agents file. Raises AgentsFileError with one sentence that names the line."""
    tree = _tree(text, where)
    try:
        read = AgentsFile.model_validate(yaml.safe_load(text))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        other = OTHER_SHAPES.get(first["loc"][0]) if first["loc"] else None
        shapes = {1: AgentsFile, 3: other} if other is not None else SHAPES
        problem = f"{where}, line {_line_of(tree, first['loc'])}: {place} {in_words(first, shapes)}"
        raise AgentsFileError(problem) from error
    except RecursionError as error:
        raise AgentsFileError(f"{where}: is nested too deep") from error
    _check_directories(read, where, tree, base or Path())
    given = _files(read, where, tree, base or Path(), files or AgentFiles())
    bindings = {
        name: agent.bound_as(name, origin=origin, base=base, files=given[name]) for name, agent in read.agents.items()
    }
    default = read.default_agent or next(iter(bindings))
    problem = _default_problem(default, bindings)
    if problem is not None:
        named = read.default_agent is not None
        line = _line_of(tree, ("default_agent",) if named else ("agents", default, "events"))
        raise AgentsFileError(f"{where}, line {line}: default_agent {default!r} {problem}")
    return Defined(list(bindings.values()), default, read.resources.beside(base or Path()))


def _files(
    read: AgentsFile, where: str, tree: yaml.Node | None, base: Path, files: AgentFiles
) -> dict[str, tuple[OfferedFile, ...]]:
    found: dict[str, tuple[OfferedFile, ...]] = {}
    for agent_id, agent in read.agents.items():
        try:
            found[agent_id] = tuple(files.read(base / Path(name).expanduser()) for name in agent.files)
        except AgentFileError as error:
            line = _line_of(tree, ("agents", agent_id, "files"))
            raise AgentsFileError(f"{where}, line {line}: agents.{agent_id}.files {error}") from error
    return found


def _check_directories(read: AgentsFile, where: str, tree: yaml.Node | None, base: Path) -> None:
    """Refuse a directory that does not exist, or that an agent's program may have replaced by a link."""
    named = {place: path for agent_id, agent in read.agents.items() for place, path in _directories(agent_id, agent)}
    written = [(base / Path(path).expanduser()).resolve() for place, path in named.items() if place[2] == WORK]
    for place, path in named.items():
        whole = (base / Path(path).expanduser()).absolute()
        problem = f"there is no directory {path!r}" if not whole.is_dir() else _link_problem(whole, written)
        if problem:
            name = ".".join(map(str, place))
            raise AgentsFileError(f"{where}, line {_line_of(tree, place)}: {name} is wrong: {problem}")


def _directories(agent_id: str, agent: AgentShape) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """The directories an agent names, each after its place in the file."""
    top = ("agents", agent_id)
    if agent.working_directory is not None:
        yield (*top, WORK), agent.working_directory
    yield from (((*top, "readable", number), path) for number, path in enumerate(agent.readable))
    for number, skill in enumerate(agent.skills):
        if skill.path is not None:
            yield (*top, "skills", number, "path"), skill.path


def _link_problem(path: Path, written: Sequence[Path]) -> str | None:
    for link in _links(path):
        if any(link.is_relative_to(one) for one in written):
            return f"{link} is a link in the working directory of an agent; name the directory it points to"
    return None


def _links(path: Path) -> Iterator[Path]:
    """The links a path goes through, and the links those go through, each by its real path."""
    real, rest = Path("/"), list(path.parts[1:])
    while rest:
        here = real / rest.pop(0)
        if here.is_symlink():
            yield here
            target = here.readlink()
            real, rest = (Path("/") if target.is_absolute() else real), [*target.parts[target.is_absolute() :], *rest]
        else:
            real = here.parent.parent if here.name == ".." else here


def _default_problem(default: str, bindings: dict[str, AgentBinding]) -> str | None:
    if default not in bindings:
        return f"is not one of: {', '.join(bindings)}"
    if not takes_messages(bindings[default]):
        return "must answer message.received; add it to its events, or name another default_agent"
    return None


def _tree(text: str, where: str) -> yaml.Node | None:
    """Parse the file with its line numbers. Raises AgentsFileError, also for a key that is written twice."""
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
                    f"{where}, line {line}: {key.value} is written twice; first in line {seen[key.value]}"
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
    """The line of the deepest part of the path that exists in the file."""
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


def agents_schema() -> str:
    """The agents file as a JSON schema for editors; docs/agents.schema.json is this text."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **AgentsFile.model_json_schema()}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
