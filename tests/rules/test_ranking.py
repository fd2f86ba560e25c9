"""BM25 prefers rare words and short texts; fusion prefers what both rankings like."""

from paddock.rules.search.passages import bm25, bounded, fuse
from paddock.rules.search.tokens import terms_of, tokens_of


def ranked(query: str, *texts: str) -> list[int]:
    return [key for key, _ in bm25({n: tokens_of(text) for n, text in enumerate(texts)}, terms_of(query))]


def test_more_of_the_words_is_better_and_none_is_nothing() -> None:
    assert ranked("red apple", "a red apple", "a red car", "blue") == [0, 1]


def test_a_rare_word_counts_more_than_a_frequent_one() -> None:
    assert ranked("the zebra", "the the the cat", "a zebra", "the dog", "the cow", "the hen")[0] == 1


def test_a_lone_character_finds_the_words_that_begin_with_it() -> None:
    assert ranked("雨", "下雨了", "雨伞", "晴天") in ([0, 1], [1, 0])


def test_what_is_high_in_both_rankings_comes_first() -> None:
    assert next(key for key, _ in fuse(["a", "b", "c"], ["b", "d"])) == "b"
    assert fuse(["a"], ["a"]) == [("a", 1.0)]


def test_a_bounded_score_keeps_its_order() -> None:
    scores = [bounded(score) for score in (0.0, 0.5, 3.0, 100.0)]
    assert scores == sorted(scores)
    assert 0.0 <= min(scores) <= max(scores) < 1.0
