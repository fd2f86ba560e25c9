"""The page on security and the tests say the same: every gate is proved by a test that is there."""

import re
from pathlib import Path

TOP = Path(__file__).parents[2]


def test_every_gate_names_tests_that_exist() -> None:
    named = set(re.findall(r"`(test_\w+)`", (TOP / "docs" / "security.md").read_text()))
    files = [*(TOP / "tests").rglob("test_*.py"), *(TOP / "sdk" / "tests").rglob("test_*.py")]
    there = {name for file in files for name in (file.stem, *re.findall(r"def (test_\w+)", file.read_text()))}
    assert named - there == set()
    assert len(named) > 30


def test_every_gate_of_a_release_is_on_the_page() -> None:
    page = (TOP / "docs" / "security.md").read_text()
    gates = {"Paths", "MCP allow-list", "Redaction", "Quota", "Clean-up"}
    assert gates <= set(re.findall(r"^## (.*)$", page, re.MULTILINE))
