"""The page and the tests name the same lines: nothing is promised unproved, nothing is proved that is not promised."""

import re
from pathlib import Path

from paddock.rules.session import invariants

ROOT = Path(__file__).parents[3]
PROMISED = set(re.findall(r"^- `([a-z]+/[a-z-]+)`:", (ROOT / "docs/spec/session.md").read_text(), re.MULTILINE))
TESTS = [*Path(__file__).parent.glob("test_*.py"), *(ROOT / "tests/explorer").glob("test_*.py")]
STORIES = [*(ROOT / "tests/stories").glob("*.txt")]
PROVED = {line for test in TESTS for line in re.findall(r'@spec\("([^"]+)"\)', test.read_text())} | {
    line for story in STORIES for line in re.findall(r"^# spec: (\S+)$", story.read_text(), re.MULTILINE)
}


def test_every_promise_has_a_test_or_a_check_that_was_seen_to_fail() -> None:
    assert PROMISED - PROVED - set(invariants._CHECKS) == set()


def test_every_test_and_every_check_names_a_promise() -> None:
    assert (PROVED | set(invariants._CHECKS)) - PROMISED == set()
