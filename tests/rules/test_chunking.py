"""Chunks are exactly the stretches of the document they say, none is too long, and together they miss nothing."""

from hypothesis import given
from hypothesis import strategies as st

from paddock.rules.search.passages import GAP, MAX_CHARS, Section, chunks_of

texts = st.lists(
    st.sampled_from(["word ", "句子。", "\n", "\n\n", "x" * 400, "天" * 300, "A sentence of English. "]),
    max_size=60,
).map("".join)
sections = st.lists(st.builds(Section, texts, st.none() | st.integers(1, 9), st.sampled_from(["", "H"])), max_size=4)


@given(sections)
def test_a_chunk_is_the_stretch_its_place_names(sections: list[Section]) -> None:
    text = GAP.join(section.text for section in sections)
    for position, chunk in enumerate(chunks_of(sections)):
        assert text[chunk.start : chunk.end] == chunk.text
        assert chunk.position == position
        assert 0 < len(chunk.text) <= MAX_CHARS


@given(sections)
def test_every_letter_is_in_some_chunk(sections: list[Section]) -> None:
    text = GAP.join(section.text for section in sections)
    covered = {place for chunk in chunks_of(sections) for place in range(chunk.start, chunk.end)}
    assert all(place in covered for place, letter in enumerate(text) if letter.strip())


def test_a_chunk_keeps_the_place_of_its_section() -> None:
    chunks = chunks_of([Section("one", page=1), Section(" "), Section("two", page=2, heading="H")])
    assert [(chunk.text, chunk.page, chunk.heading) for chunk in chunks] == [("one", 1, ""), ("two", 2, "H")]


def test_a_long_section_is_cut_between_sentences() -> None:
    text = "".join(f"这是第{n}句话，说的是同一件事情。" for n in range(200))
    chunks = chunks_of([Section(text)])
    assert len(chunks) > 2
    assert all(chunk.text.endswith("。") for chunk in chunks)
