"""Read text, Markdown, HTML, PDF and DOCX files into sections of plain text with their places.

Runs in the child process (`child.py`) only: the files are strangers', and what reads them has limits of its own.
"""

import io
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

from paddock.knowledge.reading import UnreadableError, trail
from paddock.rules.errors import advice
from paddock.rules.search.passages import Section
from paddock_sdk.causes import cause_of

MAX_XML_BYTES = 64 * 1024 * 1024
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_heading_style = re.compile(r"(?:heading|标题) ?([1-9])", re.IGNORECASE)
STYLES = "word/styles.xml"


def sections_of_word(content: bytes) -> Iterator[Section]:
    path: dict[int, str] = {}
    lines: list[str] = []
    document, levels = _unpacked(content)
    for paragraph in _elements(document, "p"):
        text = _paragraph_text(paragraph)
        style = _value(paragraph, "pPr", "pStyle")
        level = levels.get(style) or _level(style)
        if level and text.strip():
            yield Section("\n".join(lines), heading=trail(path))
            path = {at: title for at, title in path.items() if at < level} | {level: text.strip()}
            lines = []
        lines.append(text)
    yield Section("\n".join(lines), heading=trail(path))


def _unpacked(content: bytes) -> tuple[bytes, Mapping[str, int]]:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            document = _part(archive, "word/document.xml")
            styles = _part(archive, STYLES) if STYLES in archive.namelist() else b""
    except (zipfile.BadZipFile, KeyError, OSError, RuntimeError, NotImplementedError) as error:
        raise UnreadableError(
            "it is no Word document but another kind of ZIP archive; unpack it, or save a table or slides as PDF"
        ) from error
    return document, _levels(styles)


def _part(archive: zipfile.ZipFile, name: str) -> bytes:
    """Unpacked no further than its bound, whatever the archive says about its size."""
    with archive.open(name) as part:
        xml = part.read(MAX_XML_BYTES + 1)
    if len(xml) > MAX_XML_BYTES:
        raise UnreadableError(f"the Word document unpacks to more than {MAX_XML_BYTES} bytes; split it")
    if b"<!DOCTYPE" in xml or b"<!ENTITY" in xml:
        raise UnreadableError("the Word document declares entities, which no word processor writes")
    return xml


def _levels(styles: bytes) -> Mapping[str, int]:
    """Word calls a style by a name of its own in every language; what it is, its entry among the styles says."""
    told = _elements(styles, "style") if styles else ()
    return {style.get(f"{_W}styleId", ""): _level(_value(style, "name")) for style in told}


def _level(name: str) -> int:
    found = _heading_style.fullmatch(name)
    return int(found[1]) if found else 0


def _elements(xml: bytes, name: str) -> Iterator[ET.Element]:
    try:
        for _, element in ET.iterparse(io.BytesIO(xml)):  # noqa: S314 - entities were refused above
            if element.tag == f"{_W}{name}":
                yield element
                element.clear()
    except ET.ParseError as error:
        raise UnreadableError(f"the Word document is damaged: {error}") from error


def _paragraph_text(paragraph: ET.Element) -> str:
    marks = {f"{_W}tab": "\t", f"{_W}br": "\n", f"{_W}cr": "\n"}
    return "".join((part.text or "") if part.tag == f"{_W}t" else marks.get(part.tag, "") for part in paragraph.iter())


def _value(element: ET.Element, *path: str) -> str:
    found = element.find("/".join(f"{_W}{name}" for name in path))
    return "" if found is None else found.get(f"{_W}val", "")


MAX_PAGES = 2_000
MAX_CHARS = 20_000_000

TEXT, MARKDOWN, HTML = "text/plain", "text/markdown", "text/html"
PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


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


def _decoded(content: bytes, declared: str = "") -> str:
    for encoding in _encodings(content, declared):
        try:
            text = content.decode(encoding)
        except (UnicodeError, LookupError):
            continue
        if "\x00" not in text:
            return text.replace("\r\n", "\n").replace("\r", "\n")
    raise UnreadableError("it is neither text nor Markdown, HTML, PDF or DOCX; convert it to one of these first")


def _encodings(content: bytes, declared: str) -> tuple[str, ...]:
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return ("utf-16",)
    return ("utf-8-sig", declared, "gb18030") if declared else ("utf-8-sig", "gb18030")


def _text(content: bytes) -> Iterator[Section]:
    yield Section(_decoded(content))


_heading = re.compile(r"^ {0,3}(#{1,6})\s++(.*)$")
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
            yield Section("\n".join(lines), heading=trail(path))
            title = found[2].rstrip().rstrip("#").rstrip()
            path = {level: text for level, text in path.items() if level < len(found[1])} | {len(found[1]): title}
            lines = []
        lines.append(line)
    yield Section("\n".join(lines), heading=trail(path))


_SILENT = frozenset({"script", "style", "template", "noscript", "svg", "title"})
_charset = re.compile(rb"""<meta[^>]{1,200}charset\s*=\s*["']?([\w-]{1,40})""", re.IGNORECASE)
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
        self.sections.append(Section(text, heading=trail(self._path)))
        self._words = []


def _declared(content: bytes) -> str:
    found = _charset.search(content, 0, 1024)
    return found[1].decode() if found else ""


def _html(content: bytes) -> Iterator[Section]:
    page = _Page()
    page.feed(_decoded(content, _declared(content)))
    page.close()
    page.end_section()
    yield from page.sections


def _pdf(content: bytes) -> Iterator[Section]:
    try:
        from pypdf import PdfReader
        from pypdf.errors import PyPdfError
    except ModuleNotFoundError as error:
        raise UnreadableError(
            advice("reading a PDF", error) or "the library that reads PDFs cannot be loaded"
        ) from error

    try:
        reader = PdfReader(io.BytesIO(content))
        if reader.is_encrypted and not reader.decrypt(""):
            raise UnreadableError("the PDF is protected by a password; save it without one")
        if len(reader.pages) > MAX_PAGES:
            raise UnreadableError(f"the PDF has more than {MAX_PAGES} pages; split it into several documents")
        for number, page in enumerate(reader.pages, 1):
            yield Section(page.extract_text(), page=number)
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, IndexError, OSError) as error:
        raise UnreadableError(f"the PDF is damaged: {cause_of(error)[:200]}") from error


READERS: Mapping[str, Callable[[bytes], Iterator[Section]]] = {
    TEXT: _text,
    MARKDOWN: _markdown,
    HTML: _html,
    PDF: _pdf,
    DOCX: sections_of_word,
}
