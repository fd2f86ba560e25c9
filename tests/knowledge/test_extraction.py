"""Files of every kind give their text with its places; what cannot be read gives a sentence; a bomb harms nobody."""

import pytest

from knowledge.makers import a_docx, a_pdf, a_pdf_bomb, zipped
from paddock.knowledge import formats
from paddock.knowledge.formats import MAX_XML_BYTES
from paddock.knowledge.ingest import extract
from paddock.knowledge.reading import UnreadableError
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.search.passages import Section

pytestmark = pytest.mark.anyio

MARKDOWN = "intro\n\n# One\ntext\n\n```\n# not a heading\n```\n## Two\nmore\n# Three\nend"
HTML = b"""<!DOCTYPE html><html><head><title>T</title><style>p{}</style></head><body><h1>One</h1><p>first
line &amp; <b>bold</b></p><script>evil()</script><h2>Two</h2><ul><li>a</li><li>b</li></ul></body></html>"""


def read(name: str, content: bytes) -> list[Section]:
    return list(formats.sections_of(formats.media_type_of(name, content), content))


def test_markdown_has_a_section_for_each_heading() -> None:
    found = read("a.md", MARKDOWN.encode())
    assert [section.heading for section in found] == ["", "One", "One > Two", "Three"]
    assert "# not a heading" in found[1].text


def test_html_gives_what_a_person_reads() -> None:
    found = read("page", HTML)
    assert [(section.heading, section.text) for section in found] == [
        ("One", "One\n\nfirst\nline & bold"),
        ("One > Two", "Two\n\na\n\nb"),
    ]


def test_html_needs_no_end_of_its_head_and_is_in_the_encoding_it_says() -> None:
    (found,) = read("page", b"<!doctype html><title>T</title><head><meta charset=utf-8><body><h1>One</h1><p>first")
    assert found == Section("One\n\nfirst", heading="One")
    page = '<html><head><meta http-equiv="Content-Type" content="text/html; charset={0}"></head><p>{1}'
    for encoding, words in (("ISO-8859-1", "Le café à midi"), ("big5", "員工手冊"), ("shift_jis", "カフェの珈琲")):
        assert read("page.html", page.format(encoding, words).encode(encoding))[0].text == words
    assert read("page.html", page.format("rot13", "员工手册").encode("gb18030"))[0].text == "员工手册"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "gb18030"])
def test_text_is_read_in_the_encodings_people_use(encoding: str) -> None:
    assert read("a.txt", "员工手册\r\n第一章".encode(encoding))[0].text == "员工手册\n第一章"


def test_a_pdf_gives_its_pages() -> None:
    found = read("a.pdf", a_pdf("Hello World", "Second page"))
    assert [(section.page, section.text.strip()) for section in found] == [(1, "Hello World"), (2, "Second page")]


def test_a_word_document_gives_its_headings() -> None:
    document = a_docx(("Heading1", "Rules"), ("Normal", "Be kind."), ("Heading2", "请假"), ("Normal", "十五天。"))
    found = read("a.docx", document)
    assert [(section.heading, section.text) for section in found] == [
        ("Rules", "Rules\nBe kind."),
        ("Rules > 请假", "请假\n十五天。"),
    ]


def test_headings_of_a_word_document_are_known_in_every_language() -> None:
    chinese = a_docx(("1", "报销"), ("a3", "十天内报销。"), styles={"1": "heading 1", "a3": "Normal"})
    german = a_docx(("berschrift2", "Urlaub"), ("Standard", "30 Tage."), styles={"berschrift2": "heading 2"})
    assert [section.heading for section in read("a.docx", chinese)] == ["报销"]
    assert [section.heading for section in read("b.docx", german)] == ["Urlaub"]


ENTITIES = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("a.bin", b"\x00\x01\x02\xff" * 50, "neither text nor"),
        ("a.pdf", b"%PDF-1.4 nonsense", "damaged"),
        ("a.docx", zipped(b"x", "other.xml"), "no Word document"),
        ("a.docx", b"PK\x03\x04 not a zip", "no Word document"),
        ("a.docx", a_docx(("Normal", "&b;"), head=ENTITIES), "declares entities"),
        ("a.docx", zipped(b"<broken"), "damaged"),
        ("a.docx", zipped(b"<a>" + b" " * (MAX_XML_BYTES + 10)), "unpacks to more"),
    ],
)
async def test_what_cannot_be_read_is_refused_with_the_reason(name: str, content: bytes, why: str) -> None:
    with pytest.raises(HostError) as refused:
        await extract(name, content)
    assert refused.value.code is ErrorCode.INVALID_ARGUMENT
    assert why in refused.value.message
    assert refused.value.message.startswith(f"{name} cannot be read: ")


async def test_the_child_gives_what_the_formats_give() -> None:
    found = await extract("a.md", MARKDOWN.encode())
    assert (found.media_type, list(found.sections)) == ("text/markdown", read("a.md", MARKDOWN.encode()))


@pytest.mark.parametrize(
    ("megabytes", "pages", "seconds", "why"),
    [(100, 1, 60, "damaged"), (30, 500, 2, "took more than"), (1, 2001, 60, "pages; split")],
)
async def test_a_pdf_bomb_ends_in_a_sentence_and_harms_nobody(
    megabytes: int, pages: int, seconds: float, why: str
) -> None:
    with pytest.raises(HostError) as refused:
        await extract("bomb.pdf", a_pdf_bomb(megabytes=megabytes, pages=pages), seconds=seconds)
    assert why in refused.value.message


async def test_a_file_that_takes_for_ever_is_given_up() -> None:
    with pytest.raises(HostError) as refused:
        await extract("a.txt", b"x" * 1000, seconds=0.001)
    assert "took more than" in refused.value.message


def test_a_document_with_too_much_text_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "MAX_CHARS", 10)
    with pytest.raises(UnreadableError, match="split it"):
        read("a.txt", b"eleven chars")
