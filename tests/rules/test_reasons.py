"""Codes of the reasons in audit rows: of each sentence the host writes, and of nothing else."""

import re
from pathlib import Path

import pytest

import paddock
from paddock.rules.access.explain import CODES, FILLED, SENTENCES, Coded, coded
from paddock.rules.errors import ErrorCode

SOURCES = Path(paddock.__file__).parent
TABLE = SOURCES / "rules" / "reasons.py"


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("in the grant of the run", Coded("in_the_grant")),
        ("in the grant of the run (over mcp)", Coded("in_the_grant")),
        ("role admin", Coded("role", {"role": "admin"})),
        ("asked before: pending", Coded("asked_before", {"status": "pending"})),
        ("in force: a, b", Coded("in_force", {"agents": "a, b"})),
        ("12 past their time", Coded("past_their_time", {"count": "12"})),
        ("turn_not_live", Coded("turn_not_live")),
        ("the tool 'add' is not granted to this run", None),
        ("", None),
    ],
)
def test_a_reason_has_a_code_where_it_is_one_of_our_own(reason: str, told: Coded | None) -> None:
    assert coded(reason) == told


def test_every_sentence_of_the_table_is_one_that_the_host_writes() -> None:
    """A sentence that is changed where it is written would lose its code without a word."""
    written = "\n".join(path.read_text() for path in SOURCES.rglob("*.py") if path != TABLE)
    beginnings = [re.split(r"\(\?P<\w+>.*?\)", pattern)[0] or pattern.rpartition(")")[2] for pattern in FILLED]
    assert [sentence for sentence in CODES if f'"{sentence}"' not in written] == []
    assert [words for words in beginnings if words not in written] == []


def test_the_console_has_words_for_every_code() -> None:
    words = (SOURCES.parents[1] / "console" / "src" / "words" / "en.ts").read_text()
    reasons = [f"reason.{code}" for code in (*CODES.values(), *FILLED.values())]
    wanted = [*reasons, *(f"why.{code}" for code in SENTENCES), *(f"problem.{code}" for code in ErrorCode)]
    assert [key for key in wanted if f'"{key}":' not in words] == []
