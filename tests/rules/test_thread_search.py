"""What somebody types into a search, and the line that is shown of what was found."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.rules.search.queries import SNIPPET_CHARS, Piece, owner_mark, snippet, thread_phrases
from paddock.rules.search.tokens import Phrase, tokens_of


def shown(text: str, query: str) -> str:
    return "".join(f"[{piece.text}]" if piece.hit else piece.text for piece in snippet(text, thread_phrases(query)))


def test_the_last_word_is_a_beginning_unless_a_space_follows_or_it_is_short() -> None:
    assert thread_phrases("the bud") == (Phrase(("the",)), Phrase(("bud",), prefix=True))
    assert thread_phrases("the bud ") == (Phrase(("the",)), Phrase(("bud",)))
    assert thread_phrases("bu") == (Phrase(("bu",)),)
    assert thread_phrases("bud bud") == (Phrase(("bud",), prefix=True),)
    assert thread_phrases("...") == ()


@pytest.mark.parametrize(
    ("text", "query", "expected"),
    [
        ("The weather in Oslo", "oslo weath", "The [weath]er in [Oslo]"),
        ("明天的预算表在哪里", "预算表", "明天的[预算表]在哪里"),
        ("用Python写的", "python", "用[Python]写的"),
        ("a scatter of cats, a cat", "cat ", "a scatter of cats, a [cat]"),
        ("Café ﬁn\n\n  zürich", "cafe zur", "[Café] ﬁn [zür]ich"),
        ("ﬁrst the ﬁsh", "fish", "ﬁrst the [ﬁsh]"),
        ("C++ and c", "c++", "[C++] and [c]"),
        ("nothing of it", "absent", "nothing of it"),
        ("", "word", ""),
    ],
)
def test_what_was_looked_for_is_marked_in_the_text_as_it_was_written(text: str, query: str, expected: str) -> None:
    assert shown(text, query) == expected


def test_a_long_text_is_cut_around_the_first_hit() -> None:
    text = "word " * 100 + "needle " + "more " * 100
    pieces = snippet(text, thread_phrases("needle"))
    assert (pieces[0], pieces[-1]) == (Piece("…"), Piece("…"))
    assert Piece("needle", hit=True) in pieces
    assert len("".join(piece.text for piece in pieces)) <= SNIPPET_CHARS + 2
    assert pieces[1].text.startswith("word ")


@given(st.text(max_size=300), st.text(min_size=1, max_size=20).filter(lambda query: bool(query.strip())))
def test_every_text_can_be_shown_for_every_query(text: str, query: str) -> None:
    pieces = snippet(text, thread_phrases(query))
    assert all(piece.text for piece in pieces)
    assert len("".join(piece.text for piece in pieces)) <= SNIPPET_CHARS + 2


def test_no_text_can_have_the_mark_of_a_user() -> None:
    assert owner_mark("w", "ann") not in tokens_of(f"hello {owner_mark('w', 'ann')}")
    assert owner_mark("w", "ann") != owner_mark("wa", "nn")
