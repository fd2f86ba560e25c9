"""A leading `@name` in what people write. Only the name of an agent that exists is a mention; other words are text."""

from collections.abc import Iterable
from unicodedata import normalize

SIGNS = ("@", "＠")
_BETWEEN = " \t\r\n\u3000,:，：、"
"""What may stand between a mention and the words for whom it is."""
_CJK = 0x2E80
"""From here on letters are of scripts that put no space between words: none of them goes on a name of other letters."""


def leading_mention(text: str, agents: Iterable[str]) -> str | None:
    """Find the agent that a text begins by calling: the longest name that fits, its own spelling before another."""
    if not text.startswith(SIGNS):
        return None
    said = text[1:]
    fitting = [name for name in agents if name and _calls(said, name)]
    longest = max(map(len, fitting), default=0)
    fitting = [name for name in fitting if len(name) == longest]
    exact = [name for name in fitting if said.startswith(name)]
    found = exact or fitting
    return found[0] if len(found) == 1 else None


def without_mention(text: str, agent_id: str) -> str:
    """Cut the leading mention of this agent off a text; one that says nothing else stays as it is."""
    if leading_mention(text, [agent_id]) is None:
        return text
    return text[1 + len(agent_id) :].lstrip(_BETWEEN) or text


def _calls(said: str, name: str) -> bool:
    """Whether a text begins with this name, however it is spelt, and the name ends there."""
    return _folded(said[: len(name)]) == _folded(name) and not _goes_on(said[len(name) :], name)


def _folded(text: str) -> str:
    return normalize("NFKC", text).casefold()


def _goes_on(rest: str, name: str) -> bool:
    """Whether what follows is still part of a name: `ada` is not called by `@adam`, `@ada-2` or `@ada@example.org`."""
    if rest[:1] == "@":
        return True
    letters = rest[1:] if rest[:1] in ("-", ".") else rest
    if letters[:1] == "_":
        return True
    return letters[:1].isalnum() and (ord(letters[0]) < _CJK) and ord(name[-1]) < _CJK
