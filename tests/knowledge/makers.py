"""Documents for the tests: small PDF and Word files, written by hand."""

import io
import zipfile
import zlib
from collections.abc import Mapping, Sequence

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def a_pdf(*pages: str) -> bytes:
    """A PDF with one line of Latin text per page."""
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", b"", b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"]
    kids: list[str] = []
    for text in pages:
        stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode()
        objects.append(b"<</Length %d>>stream\n%b\nendstream" % (len(stream), stream))
        objects.append(_page(len(objects)))
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<</Type/Pages/Count {len(kids)}/Kids[{' '.join(kids)}]>>".encode()
    return _assembled(objects)


def _assembled(objects: Sequence[bytes]) -> bytes:
    out = bytearray(b"%PDF-1.4\n")
    places: list[int] = []
    for number, content in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    start = len(out)
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}".encode()
    out += f"trailer<</Size {len(objects) + 1}/Root 1 0 R>>\nstartxref\n{start}\n%%EOF\n".encode()
    return bytes(out)


def _page(contents: int) -> bytes:
    return (
        f"<</Type/Page/Parent 2 0 R/Contents {contents} 0 R/Resources<</Font<</F1 3 0 R>>>>/MediaBox[0 0 612 792]>>"
    ).encode()


def a_pdf_bomb(*, megabytes: int, pages: int = 1) -> bytes:
    """Pages that all show one and the same content, a small stream that unpacks to so many megabytes of text."""
    packer = zlib.compressobj(9)
    line = b"BT /F1 12 Tf (" + b"A" * 1_000_000 + b") Tj ET\n"
    packed = b"".join(packer.compress(line) for _ in range(megabytes)) + packer.flush()
    kids = " ".join(f"{number} 0 R" for number in range(5, 5 + pages))
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Count {pages}/Kids[{kids}]>>".encode(),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        b"<</Length %d/Filter/FlateDecode>>stream\n%b\nendstream" % (len(packed), packed),
        *[_page(4)] * pages,
    ]
    return _assembled(objects)


def a_docx(*paragraphs: tuple[str, str], head: str = "", styles: Mapping[str, str] | None = None) -> bytes:
    """A Word document of (style, text) paragraphs; `styles` names those that are not called as in English."""
    body = "".join(
        f'<w:p><w:pPr><w:pStyle w:val="{style}"/></w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>'
        for style, text in paragraphs
    )
    document = f'<?xml version="1.0"?>{head}<w:document xmlns:w="{W}"><w:body>{body}</w:body></w:document>'.encode()
    return zipped(document, more={} if styles is None else {"word/styles.xml": _styles(styles)})


def _styles(names: Mapping[str, str]) -> str:
    told = (f'<w:style w:styleId="{style}"><w:name w:val="{name}"/></w:style>' for style, name in names.items())
    return f'<w:styles xmlns:w="{W}">{"".join(told)}</w:styles>'


def zipped(xml: bytes, name: str = "word/document.xml", more: Mapping[str, str] | None = None) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for part, content in {name: xml, **(more or {})}.items():
            archive.writestr(part, content)
    return out.getvalue()
