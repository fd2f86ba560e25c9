"""How sure the median of a few quotients is, against values from a table of order statistics."""

from bench.versus import interval


def test_the_interval_of_twenty_rounds_leaves_out_five_at_each_end() -> None:
    assert interval([float(n) for n in range(1, 21)]) == (6.0, 15.0)


def test_the_interval_of_ten_rounds_leaves_out_one_at_each_end() -> None:
    assert interval([float(n) for n in range(1, 11)]) == (2.0, 9.0)


def test_a_few_rounds_are_all_needed() -> None:
    assert interval([1.0, 2.0, 3.0]) == (1.0, 3.0)
