"""Which agent answers an event. Exactly one does; none and several are both a mistake somebody must hear of. Pure."""

from collections.abc import Mapping, Sequence

from paddock.rules.agents.resources import matches
from paddock.rules.errors import ErrorCode, HostError

Rules = Mapping[str, Sequence[str]]
"""Agent to the event types it answers; a type may end in `*`."""


def answers(patterns: Sequence[str], event_type: str) -> bool:
    return any(matches(pattern, event_type) for pattern in patterns)


def answering(event_type: str, rules: Rules, addressed: str | None = None) -> str:
    """The one agent that answers. Raises HostError with a sentence that says which rules to change.

    An event may be addressed to an agent; then it is that one's, if it answers such events at all.
    """
    if addressed is not None:
        if not answers(rules.get(addressed, ()), event_type):
            text = f"agent {addressed!r} does not answer {event_type}; add it to its events"
            raise HostError(ErrorCode.INVALID_ARGUMENT, text)
        return addressed
    found = sorted(agent_id for agent_id, patterns in rules.items() if answers(patterns, event_type))
    if not found:
        raise HostError(ErrorCode.NOT_FOUND, f"no agent answers {event_type}; add it to the events of one")
    if len(found) > 1:
        text = f"{len(found)} agents answer {event_type} ({', '.join(found)}); leave it to exactly one of them"
        raise HostError(ErrorCode.CONFLICT, text)
    return found[0]
