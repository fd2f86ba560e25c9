"""Speakers of a group: their names stand before their words, so that a model can tell people apart. No host calls."""

from paddock_sdk import RunContext
from paddock_sdk.protocol.history import TranscriptItem
from paddock_sdk.protocol.run_context import ActorContext

MAX_NAME_CHARS = 80


def is_group(ctx: RunContext) -> bool:
    """True when several people may speak. A platform's conversation says where it came from, a user's own does not."""
    return ctx.conversation is not None and ctx.conversation.launcher_type is not None


def speaker_of(said: TranscriptItem | ActorContext | None, *, group: bool) -> str:
    """Name of a speaker in a group; empty where there is nobody to be told apart."""
    if not group or said is None or said.actor_type != "user":
        return ""
    return " ".join((said.actor_name or said.actor_id or "").split())[:MAX_NAME_CHARS]


def spoken_by(speaker: str, text: str) -> str:
    return f"({speaker} said:) {text}" if speaker and text else text
