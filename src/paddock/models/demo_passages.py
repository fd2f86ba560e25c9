"""Passages of documents that stand right before a question: the demo model reads the first one out. Pure."""

import re
from collections.abc import Sequence

from paddock_sdk.protocol.messages import Message

_QUESTION = re.compile(r"[?？]\s*$|^\s*(?:what|when|where|who|whose|which|how|why)\b|[吗呢]\s*$", re.IGNORECASE)
_PASSAGE = re.compile(r"^\[\d+\] (?P<source>[^\n]+?): (?P<text>.+?)(?=^\[\d+\] |\Z)", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ .*$", re.MULTILINE)


def read_out(question: str, before: Sequence[Message]) -> str:
    """The first passage and where it is from; nothing for what is no question, or has no passage before it.

    A runner that looks documents up shows them as `[1] SOURCE: TEXT`, the best first, right before the question.
    """
    if not before or before[-1].role not in {"user", "system"} or not _QUESTION.search(question):
        return ""
    found = _PASSAGE.search(before[-1].text)
    text = " ".join(_HEADING.sub("", found["text"]).split()) if found else ""
    return f"{text} ({found['source']})" if found and text else ""
