"""What a conversation is called when nobody gave it a title."""

import pytest

from paddock.rules.rows.rows import shortened


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("hello", "hello"),
        ("  plan \n my\x00 trip ", "plan my trip"),
        ("@helper what is 2 + 3", "what is 2 + 3"),
        ("@helper", "@helper"),
        ("a@b.example is my address", "a@b.example is my address"),
        ("word " * 20, "word word word word word word word word word word word word…"),
        ("w" * 100, "w" * 59 + "…"),
        ("请" * 61, "请" * 59 + "…"),
        ("", ""),
    ],
)
def test_a_beginning_is_one_line_of_at_most_sixty_characters(text: str, name: str) -> None:
    assert shortened(text) == name
    assert len(name) <= 60
