"""What a file is, by its first bytes. What its sender says counts only between kinds of harmless text."""

import codecs
import re
from typing import Any, cast

HEAD_BYTES = 8192
"""How much of a file is looked at."""
UNKNOWN = "application/octet-stream"
PLAIN = "text/plain"
INERT_TEXTS = frozenset(
    {PLAIN, "text/markdown", "text/csv", "text/tab-separated-values", "application/json", "application/yaml"}
    | {"application/x-ndjson", "application/toml", "text/calendar", "text/vcard", "text/x-python", "text/x-diff"}
)
"""Texts that no reader runs: between them the sender may choose, because their bytes tell nothing."""

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
_MARKUP = (
    (
        re.compile(
            r"\s*(<\?xml[^>]*>\s*)?(<!--.*?-->\s*)*(<!doctype\s+svg[^>]*>\s*)?<svg[\s>]", re.IGNORECASE | re.DOTALL
        ),
        "image/svg+xml",
    ),
    (
        re.compile(
            r"\s*(<!--.*?-->\s*)*<(!doctype\s+html|html|head|body|script|iframe)[\s>]", re.IGNORECASE | re.DOTALL
        ),
        "text/html",
    ),
    (re.compile(r"\s*<\?xml\s", re.IGNORECASE), "application/xml"),
    (re.compile(r"%PDF-"), "application/pdf"),
)
_JSON = re.compile(r'\s*(\{\s*("|\})|\[\s*("|\{|\[|\]|-?\d|true|false|null))')


def content_type(head: bytes, claimed: str | None = None) -> str:
    """The MIME type of bytes that begin with `head`."""
    text = _as_text(head[:HEAD_BYTES], whole=len(head) < HEAD_BYTES)
    if text is None:
        return _of_binary(head[:HEAD_BYTES])
    found = next((mime for pattern, mime in _MARKUP if pattern.match(text)), None)
    if found is not None:
        return found
    wanted = (claimed or "").split(";")[0].strip().lower()
    return wanted if wanted in INERT_TEXTS else "application/json" if _JSON.match(text) else PLAIN


def _as_text(head: bytes, *, whole: bool) -> str | None:
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(head, final=whole)
    except UnicodeDecodeError:
        return None
    return None if _CONTROL.search(text) else text


def _of_binary(head: bytes) -> str:
    import puremagic

    try:
        guesses = cast("list[Any]", puremagic.magic_string(head))  # pyright: ignore[reportUnknownMemberType]
    except (puremagic.PureError, ValueError):
        return UNKNOWN
    return next((str(guess.mime_type) for guess in guesses if guess.mime_type), UNKNOWN)
