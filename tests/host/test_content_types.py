"""What a file is follows from its bytes."""

import io
import zipfile

import pytest

from paddock.host.content_types import HEAD_BYTES, content_type


def a_document() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("word/document.xml", "<document/>")
    return file.getvalue()


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
        (a_document(), "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
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
