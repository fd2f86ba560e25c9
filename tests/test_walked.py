"""ARCHITECTURE.md shows the walk of one message; a real host walks it."""

from pathlib import Path

import pytest

from walked import Call, first_missing, stops_of, table_of, walk

PAGE = (Path(__file__).parent.parent / "ARCHITECTURE.md").read_text()


@pytest.fixture(scope="module")
def calls() -> list[Call]:
    return walk()


def test_a_message_comes_to_every_stop_of_the_table_in_its_order(calls: list[Call]) -> None:
    table = table_of(PAGE)
    assert len(table) > 8
    assert first_missing(table, calls) is None


def test_a_stop_that_the_message_does_not_come_to_is_named(calls: list[Call]) -> None:
    table = table_of(PAGE)
    assert (
        first_missing([*table, ["host/calls/knowledge.py"]], calls) == f"stop {len(table) + 1}: host/calls/knowledge.py"
    )


def test_a_stop_that_comes_too_early_is_named() -> None:
    crossed = [Call("doors/b.py", "g"), Call("host/a.py", "f")]
    assert first_missing([["doors/b.py"], ["host/"]], crossed) is None
    assert first_missing([["host/a.py"], ["doors/"]], crossed) == "stop 2: doors/"


def test_a_bare_name_is_in_the_folder_of_the_one_before_it() -> None:
    assert table_of("| 1 | `host/loop.py`, `draft.py` | x |\n| 2 | `storage/` | y |") == [
        ["host/loop.py", "host/draft.py"],
        ["storage/"],
    ]


def test_the_walk_counts_a_module_once_however_often_it_is_entered() -> None:
    crossed = [Call("a.py", "f"), Call("b.py", "g"), Call("a.py", "f"), Call("a.py", "h")]
    assert stops_of(crossed) == {"a.py": ["f", "h"], "b.py": ["g"]}
