"""The tokenizer: whatever stretch of Chinese a text has is found, words are found as words, nothing is an operator."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.search.tokens import MAX_QUERY_PHRASES, MAX_TOKEN_CHARS, Phrase, contains_all, phrases_of, tokens_of

chinese = st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF), min_size=1, max_size=12)
mixed = st.lists(st.one_of(chinese, st.sampled_from(["GPT", " ", "，", "。", "v1.2", "🎉", "ok", "%"])), max_size=8)


def finds(query: str, text: str) -> bool:
    return contains_all(text, phrases_of(query))


@given(mixed.map("".join), st.data())
def test_every_chinese_stretch_of_a_text_finds_it(text: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, max(0, len(text) - 1)))
    piece = text[at : at + data.draw(st.integers(1, 6))]
    if piece and all("\u4e00" <= character <= "\u9fff" for character in piece):
        assert finds(piece, text)


@given(chinese, chinese)
def test_a_chinese_query_finds_exactly_the_texts_that_contain_it(query: str, text: str) -> None:
    assert finds(query, text) == (query in text)


@given(st.text(max_size=60))
def test_tokens_are_bounded_and_hold_nothing_that_separates(text: str) -> None:
    for token in tokens_of(text):
        assert 0 < len(token) <= MAX_TOKEN_CHARS
        assert not any(character.isspace() or character in "\"'*^:(){}" for character in token)


@given(st.text(max_size=40))
def test_a_text_is_found_by_its_own_words(text: str) -> None:
    assert all(finds(word, text) for word in text.split() if len(word) < 30 and phrases_of(word))


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("天气", "今天天气很好"),
        ("气", "今天天气"),
        ("用GPT写", "我用GPT写代码"),
        ("gpt 代码", "代码是 GPT 写的"),
        ("cafe", "Un Café à Paris"),
        ("STRASSE", "Straße"),
        ("ＡＢＣ", "abc"),
        ("foo_bar", "call foo_bar()"),
        ("C++", "I write C++ and C#"),
        ("100%", "100% sure"),
        ("🎉", "done 🎉🎉"),
        ("도쿄", "나는 도쿄에 산다"),
        ("हिन्दी", "मुझे हिन्दी पसंद है"),
        ("x" * 200, "see " + "x" * 200),
        ("O'Brien", 'she said "O\'Brien"'),
    ],
)
def test_it_is_found(query: str, text: str) -> None:
    assert finds(query, text)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("气天", "今天天气很好"),
        ("你好世界", "你好，世界"),
        ("C++", "I write C"),
        ("cat", "concatenate"),
        ("%", "no such sign here"),
        ("rain OR snow", "rain only"),
        ("NOT rain", "no weather"),
        ("a*", "about"),
        ("x" * 199, "x" * 200),
    ],
)
def test_it_is_not_found(query: str, text: str) -> None:
    assert not finds(query, text)


def test_a_query_of_punctuation_has_no_phrases_and_finds_nothing() -> None:
    assert phrases_of("\"'*()") == ()
    assert not finds('"', 'a " b')


def test_a_query_is_phrases_and_only_a_lone_character_is_a_prefix() -> None:
    assert phrases_of("用GPT写 天气好 天气好") == (
        Phrase(("用", "gpt", "写"), prefix=True),
        Phrase(("天气", "气好")),
    )


def test_a_query_is_bounded() -> None:
    for query in ("x" * 1001, " ".join(f"w{n}" for n in range(MAX_QUERY_PHRASES + 1))):
        with pytest.raises(HostError) as refused:
            phrases_of(query)
        assert refused.value.code is ErrorCode.INVALID_ARGUMENT
