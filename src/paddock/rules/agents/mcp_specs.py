"""What an operator may say about an MCP server: a program to start or an address to call. Only checked here."""

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

SERVER_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}")
_URL = re.compile(r"https?://[^\s@]+")


def _is_url(value: str) -> str:
    if not _URL.fullmatch(value):
        raise ValueError("must be an http or https address without a user or password in it")
    return value


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


def name_problem(name: str) -> str | None:
    """Why this cannot be a server's name."""
    if SERVER_NAME.fullmatch(name):
        return None
    return f"{name!r} is no name for an MCP server; use a letter, then letters, digits, '_' and '-', at most 32"


def tool_name(server: str, tool: str) -> str | None:
    """What a server's tool is called here; None when models could not say it."""
    name = f"{server}__{tool}"
    return name if re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) else None
