"""How a host tells the time of its store between two answers."""

import pytest

from paddock.rules.cluster import store_offset

pytestmark = pytest.mark.spec("http/one-clock")


def test_a_clock_that_fits_the_answer_is_not_moved() -> None:
    assert store_offset(1000.5, store_time=1010.0, asked_at=9.0, answered_at=10.0) == 1000.5


@pytest.mark.parametrize(("known", "is_now"), [(0.0, 1000.0), (5000.0, 1001.0)])
def test_a_clock_that_does_not_is_moved_as_little_as_possible(known: float, is_now: float) -> None:
    assert store_offset(known, store_time=1010.0, asked_at=9.0, answered_at=10.0) == is_now


def test_quick_answers_tell_more_than_slow_ones() -> None:
    true, known = 1000.0, 0.0
    for asked_at, there, answered_at in ((1.0, 1.9, 2.0), (3.0, 3.001, 3.002), (4.0, 4.1, 9.0)):
        known = store_offset(known, there + true, asked_at, answered_at)
    assert known == pytest.approx(true, abs=0.002)
