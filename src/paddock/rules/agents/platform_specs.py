"""What an operator may say about a chat platform whose events come in and whose answers go out. Only checked here."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

PLATFORM_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}", re.ASCII)
_URL = re.compile(r"https?://[^\s@]+")


def _is_url(value: str) -> str:
    if not _URL.fullmatch(value):
        raise ValueError("must be an http or https address without a user or password in it")
    return value


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
    size_in: Literal["characters", "bytes", "utf16"] = Field(
        default="characters", description="What it counts: code points, bytes of UTF-8, or units of UTF-16."
    )
    interactions: bool = Field(
        default=False, description="Whether it can show a question with choices and hand back which one was taken."
    )
    actions: list[Literal["message.edit", "message.recall", "reaction.add"]] = Field(
        default=[], description="What it can be asked to do."
    )


def name_problem(name: str) -> str | None:
    """Why this cannot be a platform's name."""
    if PLATFORM_NAME.fullmatch(name):
        return None
    return f"{name!r} is no name for a platform; use a-z, then a-z, 0-9, '_' and '-', at most 32"
