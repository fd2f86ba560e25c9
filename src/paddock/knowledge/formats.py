"""What is in a file: text, Markdown, HTML, PDF or DOCX becomes sections of plain text with their places.

Runs in the child process of `extraction.py` only: the files are strangers', and what reads them has limits of its own.
"""

import io
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

from paddock.rules.chunking import Section

MAX_PAGES = 2_000
MAX_CHARS = 20_000_000
MAX_XML_BYTES = 64 * 1024 * 1024

TEXT, MARKDOWN, HTML = "text/plain", "text/markdown", "text/html"
PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


class UnreadableError(Exception):
    """The file cannot be read; the text is one sentence that says why and what would help."""


def media_type_of(name: str, content: bytes) -> str:
    """By content, and by name where the content does not tell."""
    head = content[:1024].lstrip().lower()
    ending = name.rpartition(".")[2].lower()
    if content.startswith(b"%PDF-"):
        return PDF
    if content.startswith(b"PK\x03\x04"):
        return DOCX
    if head.startswith((b"<!doctype html", b"<html")) or ending in {"html", "htm", "xhtml"}:
        return HTML
    return MARKDOWN if ending in {"md", "markdown"} else TEXT


def sections_of(media_type: str, content: bytes) -> Iterator[Section]:
    """The sections of a document, as long as its text keeps within bounds."""
    left = MAX_CHARS
    for section in READERS[media_type](content):
        text = section.text.replace("\x00", "").strip("\n")
        left -= len(text)
        if left < 0:
            raise UnreadableError(f"it has more than {MAX_CHARS} characters of text; split it into several documents")
        if text.strip():
            yield Section(text, section.page, section.heading[:200])


# --- plain text and Markdown --------------------------------------------------------------------------------------


def _decoded(content: bytes) -> str:
    for encoding in _encodings(content):
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError:
            continue
        if "\x00" not in text:
            return text.replace("\r\n", "\n").replace("\r", "\n")
    raise UnreadableError("it is neither text nor Markdown, HTML, PDF or DOCX; convert it to one of these first")


def _encodings(content: bytes) -> tuple[str, ...]:
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return ("utf-16",)
    return ("utf-8-sig", "gb18030")


def _text(content: bytes) -> Iterator[Section]:
    yield Section(_decoded(content))


_heading = re.compile(r"^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$")
_fence = re.compile(r"^ {0,3}(```|~~~)")


def _markdown(content: bytes) -> Iterator[Section]:
    """One section per heading; lines in fenced code are never headings. The heading line stays part of its text."""
    path: dict[int, str] = {}
    lines: list[str] = []
    fenced = ""
    for line in _decoded(content).split("\n"):
        fence = _fence.match(line)
        if fence and (not fenced or fence[1] == fenced):
            fenced = "" if fenced else fence[1]
        found = _heading.match(line) if not fenced else None
        if found:
            yield Section("\n".join(lines), heading=_trail(path))
            path = {level: text for level, text in path.items() if level < len(found[1])} | {len(found[1]): found[2]}
            lines = []
        lines.append(line)
    yield Section("\n".join(lines), heading=_trail(path))


def _trail(path: Mapping[int, str]) -> str:
    return " > ".join(path[level] for level in sorted(path))


# --- HTML ---------------------------------------------------------------------------------------------------------

_SILENT = frozenset({"script", "style", "template", "noscript", "svg", "head"})
_BLOCKS = frozenset(
    {"address", "article", "aside", "blockquote", "br", "dd", "div", "dl", "dt", "figcaption", "figure", "footer"}
    | {"form", "header", "hr", "li", "main", "nav", "ol", "p", "pre", "section", "table", "tr", "ul", "td", "th"}
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}


class _Page(HTMLParser):
    """Collects what a person would read, one section per heading."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.sections: list[Section] = []
        self._path: dict[int, str] = {}
        self._words: list[str] = []
        self._silent = 0
        self._level = 0
        self._title: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002 - its signature
        if tag in _SILENT:
            self._silent += 1
        elif tag in _HEADINGS:
            self.end_section()
            self._level, self._title = _HEADINGS[tag], []
        elif tag in _BLOCKS:
            self._words.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in _SILENT:
            self._silent = max(0, self._silent - 1)
        elif self._level and tag in _HEADINGS:
            self._end_heading()
        elif tag in _BLOCKS:
            self._words.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._silent:
            (self._title if self._level else self._words).append(data)

    def _end_heading(self) -> None:
        title = " ".join("".join(self._title).split())
        self._path = {level: text for level, text in self._path.items() if level < self._level} | {self._level: title}
        self._words.append(f"{title}\n")
        self._level = 0

    def end_section(self) -> None:
        if self._level:
            self._end_heading()
        lines = (" ".join(line.split()) for line in "".join(self._words).split("\n"))
        text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
        self.sections.append(Section(text, heading=_trail(self._path)))
        self._words = []


def _html(content: bytes) -> Iterator[Section]:
    page = _Page()
    page.feed(_decoded(content))
    page.close()
    page.end_section()
    yield from page.sections


# --- PDF ----------------------------------------------------------------------------------------------------------


def _pdf(content: bytes) -> Iterator[Section]:
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    try:
        reader = PdfReader(io.BytesIO(content))
        if reader.is_encrypted and not reader.decrypt(""):
            raise UnreadableError("the PDF is protected by a password; save it without one")
        if len(reader.pages) > MAX_PAGES:
            raise UnreadableError(f"the PDF has more than {MAX_PAGES} pages; split it into several documents")
        for number, page in enumerate(reader.pages, 1):
            yield Section(page.extract_text(), page=number)
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, IndexError, OSError) as error:
        raise UnreadableError(f"the PDF is damaged: {str(error)[:200] or type(error).__name__}") from error


# --- DOCX ---------------------------------------------------------------------------------------------------------

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_style = re.compile(r"(?:heading|标题) ?([1-9])", re.IGNORECASE)


def _docx(content: bytes) -> Iterator[Section]:
    path: dict[int, str] = {}
    lines: list[str] = []
    for paragraph in _paragraphs(_document_xml(content)):
        text = _paragraph_text(paragraph)
        level = _level(paragraph)
        if level and text.strip():
            yield Section("\n".join(lines), heading=_trail(path))
            path = {at: title for at, title in path.items() if at < level} | {level: text.strip()}
            lines = []
        lines.append(text)
    yield Section("\n".join(lines), heading=_trail(path))


def _document_xml(content: bytes) -> bytes:
    """The main part, unpacked no further than its bound whatever the archive says about its size."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive, archive.open("word/document.xml") as part:
            xml = part.read(MAX_XML_BYTES + 1)
    except (zipfile.BadZipFile, KeyError, OSError, RuntimeError, NotImplementedError) as error:
        raise UnreadableError("it is a ZIP archive and no Word document; unpack it first") from error
    if len(xml) > MAX_XML_BYTES:
        raise UnreadableError(f"the Word document unpacks to more than {MAX_XML_BYTES} bytes; split it")
    if b"<!DOCTYPE" in xml or b"<!ENTITY" in xml:
        raise UnreadableError("the Word document declares entities, which no word processor writes")
    return xml


def _paragraphs(xml: bytes) -> Iterator[ET.Element]:
    try:
        for _, element in ET.iterparse(io.BytesIO(xml)):  # noqa: S314 - entities were refused above
            if element.tag == f"{_W}p":
                yield element
                element.clear()
    except ET.ParseError as error:
        raise UnreadableError(f"the Word document is damaged: {error}") from error


def _paragraph_text(paragraph: ET.Element) -> str:
    marks = {f"{_W}tab": "\t", f"{_W}br": "\n", f"{_W}cr": "\n"}
    return "".join((part.text or "") if part.tag == f"{_W}t" else marks.get(part.tag, "") for part in paragraph.iter())


def _level(paragraph: ET.Element) -> int:
    style = paragraph.find(f"{_W}pPr/{_W}pStyle")
    found = _style.fullmatch(style.get(f"{_W}val", "")) if style is not None else None
    return int(found[1]) if found else 0


READERS: Mapping[str, Callable[[bytes], Iterator[Section]]] = {
    TEXT: _text,
    MARKDOWN: _markdown,
    HTML: _html,
    PDF: _pdf,
    DOCX: _docx,
}
