"""Keeps who was asked whether something may be done. In a group others speak too, and their yes is none."""

from paddock_runners.toolkit.values import mapping
from paddock_sdk import RunContext

PLATFORM = "platform"
"""Where more than one person may speak; elsewhere a conversation has one owner."""


def asked_of(ctx: RunContext) -> dict[str, str | bool | None]:
    """Return who spoke, as it is kept with a question; empty where a platform did not say who it was.

    The owner, who speaks elsewhere, is nobody on the platform, whatever ids there are.
    """
    actor = ctx.actor
    if actor is None or actor.metadata.get("named") is False:
        return {}
    who: dict[str, str | bool | None] = {"actor_type": actor.actor_type, "actor_id": actor.actor_id}
    return who if ctx.trigger.source == PLATFORM else {**who, "owner": True}


def may_answer(ctx: RunContext, asked: object) -> bool:
    """Tell whether the speaker is the one who was asked. The owner of the conversation may answer for everybody."""
    kept = mapping(asked)
    return ctx.trigger.source != PLATFORM or (bool(kept) and dict(kept) == asked_of(ctx))
