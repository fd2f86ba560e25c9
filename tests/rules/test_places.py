"""Cursors: what they name, and that nobody makes one up."""

import pytest

from paddock.rules.log.events import Place, cursor_of, place_of
from paddock.rules.rows.rows import WHOLE, View

HERE, ELSEWHERE = "550e8400-e29b-41d4-a716-446655440000", "550e8400-e29b-41d4-a716-446655440001"
VIEWS = [View(), View("a"), View("b"), View("*"), View(""), View("\ud800"), WHOLE]


@pytest.mark.parametrize("place", [Place(1), Place(7, 9), Place(1 << 52, 1 << 61), Place(5, None, 2, 12345)])
@pytest.mark.parametrize("view", VIEWS)
def test_a_cursor_names_its_place(place: Place, view: View) -> None:
    cursor = cursor_of(place, HERE, view)
    assert place_of(cursor, HERE, view) == place
    assert HERE not in cursor


@pytest.mark.parametrize("view", VIEWS)
def test_a_cursor_of_another_conversation_or_thread_names_nothing(view: View) -> None:
    cursor = cursor_of(Place(7), HERE, view)
    assert place_of(cursor, ELSEWHERE, view) is None
    assert [other for other in VIEWS if place_of(cursor, HERE, other) is not None] == [view]


@pytest.mark.parametrize(
    "cursor", ["", "h", "h7", "e7", "7", "-1", "AAAA", "A" * 24, "x" * 4096, "\u6f22", "a b", "=", "..."]
)
def test_a_cursor_that_nobody_was_given_names_nothing(cursor: str) -> None:
    assert place_of(cursor, HERE, View()) is None


def test_a_cursor_that_was_changed_names_nothing() -> None:
    cursor = cursor_of(Place(7, 9), HERE, View())
    changed = {cursor[:at] + other + cursor[at + 1 :] for at in range(len(cursor)) for other in "AbZ09_-"} - {cursor}
    same = {made for made in changed if place_of(made, HERE, View()) is not None}
    assert {place_of(made, HERE, View()) for made in same} <= {Place(7, 9)}  # the last character has bits to spare


def test_a_cursor_with_numbers_that_no_log_has_names_nothing() -> None:
    for place in (Place(1 << 60), Place(7, 1 << 63), Place(7, None, 2, 1 << 80)):
        assert place_of(cursor_of(place, HERE, View()), HERE, View()) is None
