"""Fusion prefers what both rankings like."""

from paddock.rules.search.passages import bounded, fuse


def test_what_is_high_in_both_rankings_comes_first() -> None:
    assert next(key for key, _ in fuse(["a", "b", "c"], ["b", "d"])) == "b"
    assert fuse(["a"], ["a"]) == [("a", 1.0)]


def test_a_bounded_score_keeps_its_order() -> None:
    scores = [bounded(score) for score in (0.0, 0.5, 3.0, 100.0)]
    assert scores == sorted(scores)
    assert 0.0 <= min(scores) <= max(scores) < 1.0
