"""The documents as a whole: their links lead somewhere, and a decision is found under one number."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def pages() -> Iterator[Path]:
    yield from ROOT.glob("*.md")
    for place in ("docs", "changes", "examples", "sdk", "src", "bench", "deploy"):
        yield from (page for page in (ROOT / place).rglob("*.md") if "node_modules" not in page.parts)


def test_every_link_between_the_documents_leads_somewhere() -> None:
    links = [(page, link) for page in pages() for link in LINK.findall(CODE.sub("", page.read_text()))]
    assert len(links) > 100
    assert [f"{page.relative_to(ROOT)}: {link}" for page, link in links if not (page.parent / link).exists()] == []


def test_every_decision_has_a_number_of_its_own() -> None:
    numbers = Counter(page.name[:4] for page in (ROOT / "docs" / "decisions").glob("*.md"))
    assert [number for number, times in numbers.items() if times > 1] == []
