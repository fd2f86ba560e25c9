"""What a file is follows from its bytes."""

import io
import random
import zipfile

import pytest

from paddock.rules.content_types import HEAD_BYTES, content_type

OFFICE = "application/vnd.openxmlformats-officedocument"


def an_archive(*entries: tuple[str, str | bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in entries:
            archive.writestr(name, content, zipfile.ZIP_STORED if name == "mimetype" else None)
    return file.getvalue()


def an_office_file(part: str, *, compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """One with a picture before its first part, as the programs write them."""
    types = f'<Types><Override PartName="/{part}" ContentType="x"/></Types>'
    picture = ("docProps/thumbnail.jpeg", random.Random(1).randbytes(3 * HEAD_BYTES))
    return an_archive(("[Content_Types].xml", types), picture, (part, "<document/>"), compression=compression)


def a_compound_file(stream: str) -> bytes:
    return b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\x00" * 1024 + stream.encode("utf-16-le") + b"\x00" * 1024


def a_document() -> bytes:
    return an_archive(("[Content_Types].xml", "<Types/>"), ("word/document.xml", "<document/>"))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "text/plain"),
        (b"hello", "text/plain"),
        ("你好".encode(), "text/plain"),
        (b"BM and other words", "text/plain"),
        (b'{"a": 1}', "application/json"),
        (b"[1, 2]", "application/json"),
        (b"[link] in a text", "text/plain"),
        (b"\n <!-- x --><!DOCTYPE html><p>", "text/html"),
        (b"<script>alert(1)</script>", "text/html"),
        (b'<?xml version="1.0"?><svg xmlns="x"/>', "image/svg+xml"),
        (b"<!-- a --> <!-- b -->\n<svg>", "image/svg+xml"),
        (b'<?xml version="1.0"?> <!-- a --><!DOCTYPE svg PUBLIC "x"> <SVG >', "image/svg+xml"),
        (b"<!-- never closed <html>", "text/plain"),
        (b"<!---->" * 24 + b"x", "text/plain"),
        (b"<!---->" * 24 + b"<body>", "text/html"),
        (b'<?xml version="1.0"?><feed/>', "application/xml"),
        (b"%PDF-1.7\n", "application/pdf"),
        (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "application/pdf"),
        (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + b"\x00" * 20, "image/png"),
        (b"\xff\xd8\xff\xe0\x00\x10JFIF\x00" + b"\x00" * 20, "image/jpeg"),
        (b"GIF89a" + b"\x00" * 20, "image/gif"),
        (b"\x00\x01\x02", "application/octet-stream"),
        (a_document(), f"{OFFICE}.wordprocessingml.document"),
        (an_office_file("word/document.xml"), f"{OFFICE}.wordprocessingml.document"),
        (an_office_file("xl/workbook.xml"), f"{OFFICE}.spreadsheetml.sheet"),
        (an_office_file("xl/workbook.xml", compression=zipfile.ZIP_STORED), f"{OFFICE}.spreadsheetml.sheet"),
        (an_office_file("ppt/presentation.xml"), f"{OFFICE}.presentationml.presentation"),
        (an_archive(("a.txt", "words")), "application/zip"),
        (an_archive(("[Content_Types].xml", "<Types/>"), ("a.bin", "x")), "application/zip"),
        (an_archive(), "application/zip"),
        (an_archive(("META-INF/MANIFEST.MF", "x")), "application/zip"),
        (
            an_archive(("mimetype", "application/vnd.oasis.opendocument.spreadsheet"), ("content.xml", "<x/>")),
            "application/vnd.oasis.opendocument.spreadsheet",
        ),
        (an_archive(("mimetype", "application/epub+zip"), ("a", "b")), "application/epub+zip"),
        (an_archive(("mimetype", "text/html"), ("a", "b")), "application/zip"),
        (a_compound_file("WordDocument"), "application/msword"),
        (a_compound_file("Workbook"), "application/vnd.ms-excel"),
        (a_compound_file("Other"), "application/x-ole-storage"),
    ],
)
def test_bytes_say_what_they_are(content: bytes, expected: str) -> None:
    assert content_type(content) == expected


@pytest.mark.parametrize(
    ("content", "claimed", "expected"),
    [
        (b"# title", "text/markdown", "text/markdown"),
        (b"a,b", "Text/CSV; charset=utf-8", "text/csv"),
        (b"alert(1)", "text/javascript", "text/plain"),
        (b"hello", "text/html", "text/plain"),
        (b"hello", "image/png", "text/plain"),
        (b"<html>", "text/markdown", "text/html"),
        (b"\x00\x01", "text/plain", "application/octet-stream"),
    ],
)
def test_a_claim_counts_only_between_harmless_texts(content: bytes, claimed: str, expected: str) -> None:
    assert content_type(content, claimed) == expected


def test_a_text_that_is_cut_inside_a_character_is_still_a_text() -> None:
    assert content_type(("a" + "中" * HEAD_BYTES).encode()[:HEAD_BYTES]) == "text/plain"
