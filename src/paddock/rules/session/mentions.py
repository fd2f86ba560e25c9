"""A leading `@name` in what people write. Only the name of an agent that exists is a mention; other words are text."""

from collections.abc import Container

_ENDS = " \t\n,:;!?，：；！？、。"


def leading_mention(text: str, agents: Container[str]) -> str | None:
    """The agent that a text begins by calling, if there is one of that name."""
    if not text.startswith("@"):
        return None
    end = next((place for place, letter in enumerate(text) if letter in _ENDS), len(text))
    name = text[1:end]
    return name if name and name in agents else None
