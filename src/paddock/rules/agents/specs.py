"""Settings of models, MCP servers and chat platforms, and the resources of an agents file. Only checked here."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from paddock.rules.values import Value, refusing

_is_reference = refusing(
    "must be env:NAME or file:PATH; a key itself is never written here",
    re.compile(r"(env|file):.+", re.DOTALL).fullmatch,
)
_is_url = refusing(
    "must be an http or https address without a user or password in it", re.compile(r"https?://[^\s@]+").fullmatch
)


def _is_base_url(value: str) -> str:
    return _is_url(value).rstrip("/")


def _named(what: str, known: re.Pattern[str], use: str) -> Callable[[str], str | None]:
    return lambda name: None if known.fullmatch(name) else f"{name!r} is no name for {what}; use {use}"


model_name_problem = _named(
    "a model", re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,127}"), "letters, digits and . _ : / @ -, at most 128"
)
server_name_problem = _named(
    "an MCP server",
    re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}"),
    "a letter, then letters, digits, '_' and '-', at most 32",
)
platform_name_problem = _named(
    "a platform", re.compile(r"[a-z][a-z0-9_-]{0,31}"), "a-z, then a-z, 0-9, '_' and '-', at most 32"
)


class ModelSpec(BaseModel):
    """One model of the settings. Its name is the key it stands under."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    provider: Literal["openai", "openai_responses", "anthropic"] = Field(
        description="openai: whatever speaks OpenAI's chat completions; openai_responses: its Responses API."
    )
    model: str = Field(default="", max_length=200, description="What the provider calls it; its own name unless set.")
    base_url: Annotated[str, AfterValidator(_is_base_url)] | None = Field(
        default=None, description="Where the API is; the provider's own address unless set."
    )
    key: Annotated[str, AfterValidator(_is_reference)] | None = Field(
        default=None,
        description="env:NAME or file:PATH. Unless set: the provider's usual variable, or none with a base_url.",
    )
    type: Literal["llm", "embedding", "rerank"] = Field(default="llm", description="What it does.")
    context_window: int | None = Field(default=None, gt=0, description="Tokens that fit into one question.")
    images: bool | None = Field(
        default=None, description="Whether it can look at pictures; one that cannot is told of them in words."
    )
    addresses: bool = Field(
        default=True, description="Whether pictures and files may be given by address, which the provider then reads."
    )
    max_output_tokens: int | None = Field(
        default=None, gt=0, description="Tokens an answer may have; a runner may ask for fewer."
    )
    prompt_price: float | None = Field(default=None, ge=0, description="What a million tokens of questions cost.")
    completion_price: float | None = Field(default=None, ge=0, description="What a million tokens of answers cost.")
    timeout_seconds: float = Field(default=120.0, gt=0, le=3600, description="How long the provider may be silent.")
    retries: int = Field(default=2, ge=0, le=5, description="Further attempts before the first piece of an answer.")
    fallbacks: list[str] = Field(
        default=[], max_length=5, description="Models that step in when this one cannot answer."
    )
    max_concurrency: int = Field(default=64, ge=1, le=1000, description="Questions at once; more wait.")
    defaults: dict[str, Any] = Field(
        default_factory=dict[str, Any],
        description="Sent with every question, such as temperature; a runner may override.",
    )
    allow_args: list[str] = Field(
        default=[],
        max_length=100,
        description="Further options that runners may set by extra_args, such as service_tier.",
    )
    headers: dict[str, str] = Field(default_factory=dict[str, str], description="Further headers; not for keys.")
    description: str = Field(default="", max_length=500, description="What it is good for.")


class McpServerSpec(BaseModel):
    """One MCP server. Values of `env` and `headers` may be env:NAME or file:PATH."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    command: str | None = Field(default=None, min_length=1, description="The program to start; it speaks over stdio.")
    args: list[str] = Field(default=[], max_length=100, description="Its arguments.")
    env: dict[str, str] = Field(
        default_factory=dict[str, str], description="Its variables; it sees none of the host's."
    )
    url: Annotated[str, AfterValidator(_is_url)] | None = Field(
        default=None, description="The address to call instead, for a server that speaks streamable HTTP."
    )
    headers: dict[str, str] = Field(default_factory=dict[str, str], description="Headers to send there.")
    tools: list[str] | None = Field(default=None, description="Which of its tools are offered; all unless set.")
    timeout_seconds: float = Field(default=60.0, gt=0, le=3600, description="How long one call may take.")

    @model_validator(mode="after")
    def _is_one_of_both(self) -> "McpServerSpec":
        if (self.command is None) == (self.url is None):
            raise ValueError("needs either command (a program to start) or url (an address to call)")
        return self


def tool_name(server: str, tool: str) -> str | None:
    """Return the host's name for a server's tool; None when model providers would refuse it."""
    name = f"{server}__{tool}"
    return name if re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) else None


KnownAction = Literal["message.edit", "message.recall", "reaction.add"]
TextUnit = Literal["characters", "bytes", "utf16"]


class PlatformSpec(BaseModel):
    """One platform. Secrets may be env:NAME or file:PATH; one that begins with whsec_ is base64."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    secret: str = Field(min_length=1, description="What its events are signed with, and unless set our deliveries too.")
    webhook: Annotated[str, AfterValidator(_is_url)] | None = Field(
        default=None, description="Where answers are delivered; without it they are only kept."
    )
    webhook_secret: str | None = Field(default=None, min_length=1, description="What deliveries are signed with.")
    workspace: str = Field(default="default", min_length=1, max_length=128, description="Whose agents answer.")
    user: str | None = Field(
        default=None, min_length=1, max_length=128, description="To whom its conversations belong; its name unless set."
    )
    agent: str | None = Field(default=None, description="Who answers its messages, when its events do not say.")
    streaming: bool = Field(default=False, description="Whether it can show an answer while it is made.")
    max_message_size: int | None = Field(
        default=None, ge=100, le=10_000_000, description="How long one message may be; longer answers are split."
    )
    size_in: TextUnit = Field(
        default="characters", description="What it counts: code points, bytes of UTF-8, or units of UTF-16."
    )
    interactions: bool = Field(
        default=False, description="Whether it can show a question with choices and hand back which one was taken."
    )
    actions: list[KnownAction] = Field(default=[], description="What it can be asked to do.")


FILE = "file:"
NO_MODELS: Mapping[str, ModelSpec] = {}
NO_SERVERS: Mapping[str, McpServerSpec] = {}


class NamedResources(Value, frozen=True):
    """`tools` are Python files and modules whose functions are tools."""

    models: Mapping[str, ModelSpec] = NO_MODELS
    tools: tuple[str, ...] = ()
    mcp_servers: Mapping[str, McpServerSpec] = NO_SERVERS

    def beside(self, directory: Path) -> "NamedResources":
        """Resolve relative paths against this directory."""
        return NamedResources(
            {name: _model_beside(spec, directory) for name, spec in self.models.items()},
            tuple(
                str(directory / Path(place).expanduser()) if place.endswith(".py") else place for place in self.tools
            ),
            {name: _server_beside(spec, directory) for name, spec in self.mcp_servers.items()},
        )


def _model_beside(spec: ModelSpec, directory: Path) -> ModelSpec:
    return spec if spec.key is None else spec.model_copy(update={"key": _reference(spec.key, directory)})


def _server_beside(spec: McpServerSpec, directory: Path) -> McpServerSpec:
    env = {name: _reference(value, directory) for name, value in spec.env.items()}
    headers = {name: _reference(value, directory) for name, value in spec.headers.items()}
    return spec.model_copy(update={"env": env, "headers": headers})


def _reference(value: str, directory: Path) -> str:
    if not value.startswith(FILE):
        return value
    return f"{FILE}{directory / Path(value.removeprefix(FILE)).expanduser()}"
