"""A full host: who gets the next seat."""

import pytest

from paddock.rules.access.limits import admits, next_in_line


@pytest.mark.parametrize(
    ("busy", "workspace", "expected"),
    [
        ({}, "a", True),
        ({"a": 8}, "a", True),
        ({"a": 9}, "a", False),  # alone, and still not the last seat
        ({"a": 9}, "b", True),
        ({"a": 9, "b": 1}, "b", False),  # full
        ({"a": 5, "b": 1}, "a", False),  # its half
        ({"a": 5, "b": 1}, "b", True),
        ({"a": 3, "b": 3, "c": 3}, "b", True),
        ({"a": 4, "b": 2, "c": 2}, "a", False),
    ],
)
def test_everybody_gets_a_fair_share_of_ten_seats(busy: dict[str, int], workspace: str, expected: bool) -> None:
    assert admits(busy, workspace, 10, several=True) is expected


def test_where_nobody_else_ever_asks_one_workspace_gets_all_seats() -> None:
    assert admits({"a": 9}, "a", 10, several=False)
    assert not admits({"a": 10}, "a", 10, several=False)


def test_a_host_with_one_seat_has_one_seat() -> None:
    assert admits({}, "a", 1, several=True)
    assert not admits({"a": 1}, "b", 1, several=True)


def test_of_those_who_wait_the_one_with_the_fewest_runs_is_next() -> None:
    assert next_in_line(["noisy", "quiet"], {"noisy": 5, "quiet": 1}) == "quiet"
    assert next_in_line(["first", "second"], {}) == "first"
