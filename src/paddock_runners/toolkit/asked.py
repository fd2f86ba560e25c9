"""Keeps who was asked whether something may be done. In a group others speak too, and their yes is none."""

from paddock_runners.toolkit.values import mapping
from paddock_sdk import RunContext

PLATFORM = "platform"
"""Where more than one person may speak; elsewhere a conversation has one owner."""


def asked_of(ctx: RunContext) -> dict[str, str | None]:
    """Return who spoke, as it is kept with a question."""
    actor = ctx.actor
    return {} if actor is None else {"actor_type": actor.actor_type, "actor_id": actor.actor_id}


def may_answer(ctx: RunContext, asked: object) -> bool:
    """Tell whether the speaker is the one who was asked. The owner of the conversation may answer for everybody."""
    kept = mapping(asked)
    return ctx.trigger.source != PLATFORM or not kept or dict(kept) == asked_of(ctx)
