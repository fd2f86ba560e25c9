"""Word documents: paragraphs, and the headings among them. Runs in the child process (`child.py`) only."""

import io
import re
import zipfile
from collections.abc import Iterator, Mapping
from xml.etree import ElementTree as ET

from paddock.knowledge.reading import UnreadableError, trail
from paddock.rules.search.chunking import Section

MAX_XML_BYTES = 64 * 1024 * 1024
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_heading = re.compile(r"(?:heading|标题) ?([1-9])", re.IGNORECASE)
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
    """The main part, and which of its styles are headings of which level."""
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
    found = _heading.fullmatch(name)
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
