"""Detect the type of a file by its first bytes. The sender's claim counts only between kinds of plain text."""

import codecs
import re
import zlib
from collections.abc import Iterator
from typing import Any, cast

HEAD_BYTES = 8192
"""Bytes of a file that are looked at."""
UNKNOWN = "application/octet-stream"
PLAIN = "text/plain"
INERT_TEXTS = frozenset(
    {PLAIN, "text/markdown", "text/csv", "text/tab-separated-values", "application/json", "application/yaml"}
    | {"application/x-ndjson", "application/toml", "text/calendar", "text/vcard", "text/x-python", "text/x-diff"}
)
"""Types of text that no program executes. The sender may choose between them, because their bytes do not differ."""

ZIP = "application/zip"
OLE = "application/x-ole-storage"
_OFFICE = "application/vnd.openxmlformats-officedocument"
_OFFICE_FOLDERS = {
    b"word": f"{_OFFICE}.wordprocessingml.document",
    b"xl": f"{_OFFICE}.spreadsheetml.sheet",
    b"ppt": f"{_OFFICE}.presentationml.presentation",
}
_OLE_STREAMS = {
    "WordDocument": "application/msword",
    "Workbook": "application/vnd.ms-excel",
    "PowerPoint Document": "application/vnd.ms-powerpoint",
}
_ZIP_ENTRY, _OLE = b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_STATED_TYPE = re.compile(rb"application/(?:epub\+zip|vnd\.oasis\.opendocument\.[a-z-]{1,40})")
_SPACE = re.compile(r"\s*")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
_DECLARATION = re.compile(r"<\?xml[\s?>]", re.IGNORECASE)
_SVG_DOCTYPE = re.compile(r"<!doctype\s+svg", re.IGNORECASE)
_SVG = re.compile(r"<svg[\s>]", re.IGNORECASE)
_HTML = re.compile(r"<(!doctype\s+html|html|head|body|script|iframe)[\s>]", re.IGNORECASE)
_PROLOGUE = ((re.compile(r"<!--"), "-->"), (_DECLARATION, ">"), (_SVG_DOCTYPE, ">"))
"""Constructs that may precede a document's first element, each with its end."""
_JSON = re.compile(r'\s*(\{\s*("|\})|\[\s*("|\{|\[|\]|-?\d|true|false|null))')


def content_type(head: bytes, claimed: str | None = None) -> str:
    text = _as_text(head[:HEAD_BYTES], whole=len(head) < HEAD_BYTES)
    if text is None:
        return _of_binary(head[:HEAD_BYTES], claimed or "")
    if found := _of_markup(text):
        return found
    wanted = (claimed or "").split(";")[0].strip().lower()
    return wanted if wanted in INERT_TEXTS else "application/json" if _JSON.match(text) else PLAIN


def _of_markup(text: str) -> str | None:
    """Tell SVG, HTML, other XML and PDF by their first element. Each character is read once, whatever the input."""
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


def _of_binary(head: bytes, claimed: str) -> str:
    if head.startswith(_ZIP_ENTRY):
        return _of_zip(head, claimed)
    if head.startswith(_OLE):
        return next((mime for name, mime in _OLE_STREAMS.items() if name.encode("utf-16-le") in head), OLE)
    return _by_magic(head)


def _of_zip(head: bytes, claimed: str) -> str:
    """Tell office files from archives by the names of their first entries and by their table of contents."""
    entries = dict(_zip_entries(head))
    if stated := entries.get(b"mimetype"):  # OpenDocument and EPUB name their type there, uncompressed
        found = _STATED_TYPE.match(head, stated)
        return found[0].decode("ascii") if found else ZIP
    folders = {name.partition(b"/")[0] for name in entries}
    if at := entries.get(b"[Content_Types].xml"):
        parts = _inflated(head[at:])
        folders |= {folder for folder in _OFFICE_FOLDERS if b'PartName="/%s/' % folder in parts}
    kinds = [kind for folder, kind in _OFFICE_FOLDERS.items() if folder in folders]
    return claimed if claimed in kinds else kinds[0] if kinds else ZIP


def _zip_entries(head: bytes) -> Iterator[tuple[bytes, int]]:
    at = head.find(_ZIP_ENTRY)
    while at >= 0 and at + 30 <= len(head):
        name, extra = (int.from_bytes(head[at + field : at + field + 2], "little") for field in (26, 28))
        yield head[at + 30 : at + 30 + name], at + 30 + name + extra
        at = head.find(_ZIP_ENTRY, at + 30)


def _inflated(data: bytes) -> bytes:
    try:
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, 8 * HEAD_BYTES)
    except zlib.error:
        return data


def _by_magic(head: bytes) -> str:
    import puremagic

    try:
        guesses = cast("list[Any]", puremagic.magic_string(head))  # pyright: ignore[reportUnknownMemberType]
    except (puremagic.PureError, ValueError):
        return UNKNOWN
    return next((str(guess.mime_type) for guess in guesses if guess.mime_type), UNKNOWN)
