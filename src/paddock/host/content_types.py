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

_SPACE = re.compile(r"\s*")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
_DECLARATION = re.compile(r"<\?xml[\s?>]", re.IGNORECASE)
_SVG_DOCTYPE = re.compile(r"<!doctype\s+svg", re.IGNORECASE)
_SVG = re.compile(r"<svg[\s>]", re.IGNORECASE)
_HTML = re.compile(r"<(!doctype\s+html|html|head|body|script|iframe)[\s>]", re.IGNORECASE)
_PROLOGUE = ((re.compile(r"<!--"), "-->"), (_DECLARATION, ">"), (_SVG_DOCTYPE, ">"))
"""What may stand before a document's first element, each with its end."""
_JSON = re.compile(r'\s*(\{\s*("|\})|\[\s*("|\{|\[|\]|-?\d|true|false|null))')


def content_type(head: bytes, claimed: str | None = None) -> str:
    """The MIME type of bytes that begin with `head`."""
    text = _as_text(head[:HEAD_BYTES], whole=len(head) < HEAD_BYTES)
    if text is None:
        return _of_binary(head[:HEAD_BYTES])
    if found := _of_markup(text):
        return found
    wanted = (claimed or "").split(";")[0].strip().lower()
    return wanted if wanted in INERT_TEXTS else "application/json" if _JSON.match(text) else PLAIN


def _of_markup(text: str) -> str | None:
    """Tell SVG, HTML, other XML and PDF by their first element. Each character is passed once, whatever is written."""
    if text.startswith("%PDF-"):
        return "application/pdf"
    start = _behind_space(text, 0)
    declared = _DECLARATION.match(text, start) is not None
    element = _first_element(text, start)
    if _SVG.match(text, element):
        return "image/svg+xml"
    if declared:
        return "application/xml"
    return "text/html" if _HTML.match(text, element) else None


def _first_element(text: str, at: int) -> int:
    """The place behind comments, a declaration and the document type of SVG."""
    while passed := next((end for opening, end in _PROLOGUE if opening.match(text, at)), None):
        closed = text.find(passed, at + len("<!--"))
        if closed < 0:
            return len(text)
        at = _behind_space(text, closed + len(passed))
    return at


def _behind_space(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at


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
