"""What an operator may say about a model: who provides it, under which name, with which key. Only checked here."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

MODEL_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,127}")
_REFERENCE = re.compile(r"(env|file):.+", re.DOTALL)
_URL = re.compile(r"https?://[^\s@]+")


def _is_reference(value: str) -> str:
    if not _REFERENCE.fullmatch(value):
        raise ValueError("must be env:NAME or file:PATH; a key itself is never written here")
    return value


def _is_url(value: str) -> str:
    if not _URL.fullmatch(value):
        raise ValueError("must be an http or https address without a user or password in it")
    return value.rstrip("/")


class ModelSpec(BaseModel):
    """One model of the settings. Its name is the key it stands under."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    provider: Literal["openai", "openai_responses", "anthropic"] = Field(
        description="openai: whatever speaks OpenAI's chat completions; openai_responses: its Responses API."
    )
    model: str = Field(default="", max_length=200, description="What the provider calls it; its own name unless set.")
    base_url: Annotated[str, AfterValidator(_is_url)] | None = Field(
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


def name_problem(name: str) -> str | None:
    """Why this cannot be a model's name."""
    if MODEL_ID.fullmatch(name):
        return None
    return f"{name!r} is no name for a model; use letters, digits and . _ : / @ -, at most 128"
