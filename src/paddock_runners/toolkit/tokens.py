"""How many tokens a text takes, about. A guess on the high side: no tokenizer fits every model, and none is needed."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from paddock_runners.toolkit.values import listing

PER_MESSAGE = 6
"""What a message costs besides its words."""
PICTURE = 1200
PICTURES = frozenset({"picture", "image_base64"})
"""Parts of a message that are looked at: one that is still to be read, one that is there."""


def tokens_in(text: str) -> int:
    """Four Latin characters make a token; of other scripts each character does."""
    if text.isascii():
        return len(text) // 4 + 1
    foreign = (len(text.encode()) - len(text) + 1) // 2
    return foreign + (len(text) - min(foreign, len(text))) // 4 + 1


def tokens_of(message: Mapping[str, Any]) -> int:
    """One message as a model is shown it."""
    content = message.get("content")
    parts = listing(content) or [{"text": content or ""}]
    words = sum(PICTURE if part.get("type") in PICTURES else tokens_in(part.get("text") or "") for part in parts)
    calls = message.get("tool_calls") or ()
    return PER_MESSAGE + words + sum(tokens_in(json.dumps(call, ensure_ascii=False)) for call in calls)


def tokens_of_all(messages: Iterable[Mapping[str, Any]]) -> int:
    return sum(tokens_of(message) for message in messages)
