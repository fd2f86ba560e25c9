"""Every named line of the page on the HTTP API is proved by a test, and no test claims a line that is not there."""

import re
from pathlib import Path

from http_api.test_run_input import TABLE

HERE = Path(__file__).parent
PAGE = (HERE.parents[1] / "docs/spec/http.md").read_text()


def test_the_page_and_the_tests_name_the_same_lines() -> None:
    promised = re.findall(r"^- `(http/[a-z-]+)`:", PAGE, re.MULTILINE)
    proved = {
        name for file in HERE.glob("test_*.py") for name in re.findall(r'mark\.spec\("([^"]+)"\)', file.read_text())
    }
    assert len(promised) == len(set(promised)) > 30
    assert set(promised) == proved


def test_the_page_has_every_sentence_of_the_table() -> None:
    assert all(f"`{sentence}`" in PAGE for sentence, _ in TABLE)
