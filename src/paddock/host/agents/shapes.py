"""The definition of an agent, as written in the agents file and sent to the API, and its validation.

The descriptions of the fields become the reference in the guide and the JSON schema for editors.
"""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, field_validator, model_validator
from pydantic_core import ErrorDetails

from paddock.host.agents.agents import MESSAGES_ONLY, AgentBinding, Origin
from paddock.host.zones import is_time_zone
from paddock.ports.runners import IsolationLevel
from paddock.rules.access.permissions import USUAL_SCOPES, BindingPolicy
from paddock.rules.agents.resources import AgentExtras, Choice, OfferedFile
from paddock_sdk.causes import complaint_of
from paddock_sdk.protocol.ids import RunnerId
from paddock_sdk.protocol.manifest import (
    ArtifactOperation,
    HistoryScope,
    KnowledgeOperation,
    ModelOperation,
    StorageArea,
    ToolOperation,
)
from paddock_sdk.protocol.results import STATE_SCOPES

NAME = re.compile(r"\w[\w.-]{0,63}")
EVENT_TYPE = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*(\.\*)?|\*")
MAX_NAMED = 1000
TOOL_WORDS = ("all", "read_only")
MAX_INSTRUCTIONS = 200_000


MODELS, TOOLS, KNOWLEDGE = get_args(ModelOperation), get_args(ToolOperation), get_args(KnowledgeOperation)


def _chosen(operations: tuple[str, ...], *words: str) -> BeforeValidator:
    """Validator of a choice of resources: a word, a list of names, or names with operations."""
    allowed = f"{', '.join(words)}, a list of names, or names with a list of operations ({', '.join(operations)})"

    def read(value: object) -> Choice:
        if isinstance(value, str) and value in words:
            return cast("Choice", value)
        if isinstance(value, list) and all(isinstance(name, str) and name for name in cast("list[object]", value)):
            return dict.fromkeys(cast("list[str]", value))
        if isinstance(value, dict):
            given = cast("dict[str, object]", value)
            return {name: _operations(name, wanted, operations) for name, wanted in given.items()}
        raise ValueError(f"must be {allowed}")

    return BeforeValidator(read)


def _operations(name: str, wanted: object, known: tuple[str, ...]) -> frozenset[str] | None:
    if wanted is None or wanted == "all":
        return None
    if not isinstance(wanted, list) or any(one not in known for one in cast("list[object]", wanted)):
        raise ValueError(f"{name}: must be a list of operations out of {', '.join(known)}, or all")
    return frozenset(cast("list[str]", wanted))


def _choice_schema(operations: tuple[str, ...], *words: str) -> WithJsonSchema:
    some = {"type": "array", "items": {"enum": list(operations)}}
    names = {"type": "array", "items": {"type": "string"}}
    with_operations = {"type": "object", "additionalProperties": {"anyOf": [{"const": "all"}, some]}}
    return WithJsonSchema({"anyOf": [{"enum": list(words)}, names, with_operations]})


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", defer_build=True)


class ContextItem(_Shape):
    """A fact the agent should always know."""

    description: str = Field(max_length=2000)
    value: str = Field(max_length=MAX_INSTRUCTIONS)


def _named(value: object) -> object:
    return {"name": value} if isinstance(value, str) else value


class Skill(_Shape):
    """A skill the runner may use; it may be given as its name alone."""

    name: str = Field(min_length=1, max_length=128)
    display_name: str | None = Field(default=None, max_length=200)
    description: str | None = Field(default=None, max_length=2000)
    path: str | None = Field(
        default=None, min_length=1, max_length=1000, description="The directory with its SKILL.md; agents file only."
    )

    def for_run(self, base: Path) -> dict[str, Any]:
        fields = {
            "skill_name": self.name,
            "display_name": self.display_name,
            "description": self.description,
            "path": None if self.path is None else str(real(base, self.path)),
        }
        return {key: value for key, value in fields.items() if value is not None}


class McpEndpoint(_Shape):
    """An MCP server that the runner's program may use directly."""

    name: str = Field(min_length=1, max_length=128)
    transport: Literal["http", "sse"] = "http"
    url: str = Field(pattern=r"^https?://\S+$", max_length=2000)
    headers: dict[str, str] = Field(default_factory=dict[str, str])


class AgentShape(_Shape):
    """One agent."""

    runner: str = Field(description="The program that answers: plugin:AUTHOR/NAME/RUNNER.")
    label: str | None = Field(
        default=None, max_length=200, description="Its name for people; the agent's id unless set."
    )
    description: str = Field(default="", max_length=4000, description="What it is good for.")
    instructions: str | None = Field(
        default=None,
        max_length=MAX_INSTRUCTIONS,
        description="What the agent is to do; reaches the runner in its config.",
    )
    context: list[ContextItem] = Field(
        default=[], max_length=100, description="Facts the agent should always know; reach the runner in its config."
    )
    config: dict[str, Any] = Field(default_factory=dict[str, Any], description="The runner's own settings.")
    events: list[str] = Field(
        default=list(MESSAGES_ONLY),
        min_length=1,
        max_length=100,
        description="Event types it answers; one may end in .*, and * means all. Exactly one agent may match an event.",
    )
    models: Annotated[Any, _chosen(MODELS, "all"), _choice_schema(MODELS, "all")] = Field(
        default="all", description="Models it may use."
    )
    tools: Annotated[Any, _chosen(TOOLS, *TOOL_WORDS), _choice_schema(TOOLS, *TOOL_WORDS)] = Field(
        default="read_only", description="Tools it may call; read_only means those that change nothing."
    )
    knowledge_bases: Annotated[Any, _chosen(KNOWLEDGE, "all"), _choice_schema(KNOWLEDGE, "all")] = Field(
        default="all", description="Knowledge bases it may list and search."
    )
    history: bool = Field(default=True, description="May read the conversation's history.")
    history_scope: HistoryScope = Field(
        default="conversation",
        description="workspace: may read other conversations of the workspace too; agents file only.",
    )
    event_log: bool = Field(default=True, description="May read the conversation's event log.")
    artifacts: list[ArtifactOperation] = Field(
        default=[*get_args(ArtifactOperation)], description="What it may do with the conversation's files."
    )
    state_scopes: list[str] = Field(
        default=[*USUAL_SCOPES], description=f"Where it may keep small values between runs: {', '.join(STATE_SCOPES)}."
    )
    storage: list[StorageArea] = Field(default=["plugin"], description="Areas where it may keep data.")
    files: list[Annotated[str, Field(min_length=1, max_length=1000)]] = Field(
        default=[],
        max_length=50,
        description="Files it is given: paths beside the agents file; over the API, ids of your own uploads.",
    )
    platform_actions: list[str] = Field(
        default=[], max_length=100, description="Actions it may ask for; each still needs a person's approval."
    )
    skills: list[Annotated[Skill, BeforeValidator(_named)]] = Field(
        default=[],
        max_length=MAX_NAMED,
        description="Skills the runner may use: names, or {name, display_name, description, path}; path is a directory "
        "with a SKILL.md.",
    )
    mcp: list[McpEndpoint] = Field(
        default=[],
        max_length=100,
        description="MCP servers the runner's program may use directly: {name, url, headers}; over the API, at opened "
        "addresses only.",
    )
    run_endpoint: bool = Field(
        default=True, description="Its runs may reach what they were granted over an MCP endpoint of their own."
    )
    working_directory: str | None = Field(
        default=None,
        min_length=1,
        max_length=1000,
        description="An existing directory its runs work in, beside the agents file or absolute; agents file only. "
        "Unless set, each conversation has one of its own.",
    )
    readable: list[Annotated[str, Field(min_length=1, max_length=1000)]] = Field(
        default=[],
        max_length=50,
        description="Directories its runs may read at isolation L1, such as where a program is installed; agents file "
        "only.",
    )
    frontend_tools: bool | None = Field(
        default=None,
        description="Show it the client's own tools; unless set, the AG-UI door does and the others do not.",
    )
    cancel_on_disconnect: bool = Field(
        default=False,
        description="Stop a run when the AG-UI client that asked for it goes away; otherwise it goes on.",
    )
    while_busy: Literal["queue", "steer", "interrupt", "reject"] = Field(
        default="queue",
        description="What happens to input that arrives while it runs: `queue` (wait in line), `steer` (offered to the "
        "running turn if its runner declares steering, else like `queue`), `interrupt` (stop the running turn and go "
        "next), `reject` (refuse).",
    )
    deadline_seconds: float | None = Field(
        default=None, gt=0, le=86_400, description="How long a run may take; the host's setting unless set."
    )
    isolation: IsolationLevel | None = Field(
        default=None, description="How far its runs are kept apart at least; it does not run where that cannot be had."
    )
    locale: str | None = Field(default=None, max_length=35, description="Language to assume, such as zh_Hans.")
    time_zone: str | None = Field(
        default=None, max_length=64, description="Time zone to assume when the client says none, such as Asia/Shanghai."
    )

    @field_validator("runner")
    @classmethod
    def _check_runner(cls, value: str) -> str:
        RunnerId.parse(value)
        return value

    @field_validator("state_scopes")
    @classmethod
    def _check_state_scopes(cls, value: list[str]) -> list[str]:
        wrong = sorted(set(value) - set(STATE_SCOPES))
        if wrong:
            raise ValueError(f"unknown state scope {wrong[0]!r}; known are {', '.join(STATE_SCOPES)}")
        return value

    @field_validator("events")
    @classmethod
    def _check_events(cls, value: list[str]) -> list[str]:
        wrong = next((one for one in value if not EVENT_TYPE.fullmatch(one)), None)
        if wrong is not None:
            raise ValueError(f"{wrong!r} is no event type; write it like message.received, schedule.* or *")
        return value

    @field_validator("time_zone")
    @classmethod
    def _check_time_zone(cls, value: str | None) -> str | None:
        if value is not None and not is_time_zone(value):
            raise ValueError(f"{value!r} is no time zone; write it like Asia/Shanghai")
        return value

    @model_validator(mode="after")
    def _check_written_once(self) -> "AgentShape":
        twice = next(
            (name for name in ("instructions", "context") if getattr(self, name) and name in self.config), None
        )
        if twice is not None:
            raise ValueError(f"{twice} is also in config; say it once")
        return self

    # --- the binding

    def bound_as(
        self,
        agent_id: str,
        *,
        origin: Origin = "file",
        base: Path | None = None,
        files: tuple[OfferedFile, ...] = (),
    ) -> AgentBinding:
        """The binding of this agent. `base` is the directory of relative paths; without one it may name no files."""
        return AgentBinding(
            agent_id=agent_id,
            runner_id=self.runner,
            label=self.label or agent_id,
            description=self.description,
            config=self._whole_config(),
            while_busy=self.while_busy,
            deadline_seconds=self.deadline_seconds,
            policy=self._policy(files),
            events=tuple(self.events),
            extras=self._extras(base or Path(), public_only=origin == "api"),
            isolation=self.isolation,
            origin=origin,
            base=base,
            defined=self.model_dump(mode="json", exclude_unset=True),
        )

    def _whole_config(self) -> dict[str, Any]:
        more: dict[str, Any] = {}
        if self.instructions:
            more["instructions"] = self.instructions
        if self.context:
            more["context"] = [item.model_dump() for item in self.context]
        return {**self.config, **more}

    def _policy(self, files: tuple[OfferedFile, ...]) -> BindingPolicy:
        return BindingPolicy(
            history=self.history,
            state_scopes=frozenset(self.state_scopes),
            storage_areas=frozenset(self.storage),
            models=self.models,
            tools=self.tools,
            knowledge_bases=self.knowledge_bases,
            event_log=self.event_log,
            artifacts=frozenset(self.artifacts),
            history_scope=self.history_scope,
            platform_actions=frozenset(self.platform_actions),
            files=files,
            run_endpoint=self.run_endpoint,
        )

    def _extras(self, base: Path, *, public_only: bool) -> AgentExtras:
        named = self.working_directory
        return AgentExtras(
            skills=tuple(skill.for_run(base) for skill in self.skills),
            mcp=tuple(server.model_dump() for server in self.mcp),
            frontend_tools=self.frontend_tools,
            cancel_on_disconnect=self.cancel_on_disconnect,
            locale=self.locale,
            time_zone=self.time_zone,
            isolation=self.isolation,
            public_only=public_only,
            readable=tuple(str(real(base, path)) for path in self.readable),
            working_directory=None if named is None else str(real(base, named)),
        )


def real(base: Path, path: str) -> Path:
    """Resolve a directory that an agent names now, so that a link made later is not followed."""
    return (base / Path(path).expanduser()).resolve()


def name_problem(name: str) -> str | None:
    if NAME.fullmatch(name):
        return None
    return f"{name!r} is no name for an agent; use letters, digits, '.', '_' and '-', at most 64"


# --- validation errors in words ---------------------------------------------------------------------------------------

Shapes = Mapping[int, type[BaseModel]]
"""Shapes by the depth of their keys in a place."""
SHAPES: Shapes = {1: AgentShape}
_INNER: Mapping[str, type[BaseModel]] = {"skills": Skill, "mcp": McpEndpoint, "context": ContextItem}


def in_words(error: ErrorDetails, shapes: Shapes = SHAPES) -> str:
    """Describe a validation error; the caller puts the place before it."""
    match error["type"]:
        case "missing":
            return "is missing"
        case "extra_forbidden":
            return f"is no key here{_nearest(error['loc'], shapes)}"
        case "model_type" | "dict_type" | "model_attributes_type":
            return "must be a mapping of names to values"
        case "value_error":
            return f"is wrong: {complaint_of(error)}"
        case _:
            return f"is wrong: {complaint_of(error)[:1].lower()}{complaint_of(error)[1:]}"


def _nearest(place: tuple[int | str, ...], shapes: Shapes) -> str:
    inner = [_INNER[part] for part in place[:-1] if isinstance(part, str) and part in _INNER]
    shape = inner[-1] if inner else shapes.get(len(place))
    if shape is None:
        return ""
    known = list(shape.model_fields)
    close = get_close_matches(str(place[-1]), known, n=1)
    return f"; did you mean {close[0]}?" if close else f"; known are: {', '.join(known)}"
