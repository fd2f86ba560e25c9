"""What counts as calling somebody by name at the beginning of a text."""

import pytest

from paddock.rules.session.routing import leading_mention, without_mention
from rules.session.playing import spec

AGENTS = frozenset({"ada", "code-helper", "小明"})


@spec("route/leading-name")
@pytest.mark.parametrize(
    ("text", "agent"),
    [
        ("@ada hello", "ada"),
        ("@ada", "ada"),
        ("@ada: hello", "ada"),
        ("@code-helper, look", "code-helper"),
        ("@小明，你好", "小明"),
        ("@小明你好", "小明"),
        ("@小明 hello", "小明"),
        ("@小明, look", "小明"),
        ("@Ada hello", "ada"),
        ("@ADA", "ada"),
        ("＠ada hello", "ada"),
        ("＠ａｄａ hello", "ada"),
        ("@ada你好", "ada"),
        ("@ada。", "ada"),
        ("@ada. Hello", "ada"),
        ("@ada (you)", "ada"),
        ("@ada's", "ada"),
        ("@ada - hello", "ada"),
        ("@Code-Helper看看", "code-helper"),
        ("@adam hello", None),
        ("@ada2", None),
        ("@ada-2", None),
        ("@ada_b", None),
        ("@ada.example.org", None),
        ("@adaé", None),
        ("hello @ada", None),
        (" @ada hello", None),
        ("@ ada", None),
        ("@", None),
        ("", None),
        ("@everyone", None),
        ("@ada@example.org", None),
    ],
)
def test_only_the_name_of_an_agent_at_the_very_beginning_is_a_mention(text: str, agent: str | None) -> None:
    assert leading_mention(text, AGENTS) == agent


@spec("route/leading-name")
def test_names_that_differ_only_in_spelling_are_told_apart_by_it() -> None:
    agents = ("ada", "Ada", "ada-two")
    assert leading_mention("@Ada hello", agents) == "Ada"
    assert leading_mention("@ada hello", agents) == "ada"
    assert leading_mention("@ADA hello", agents) is None
    assert leading_mention("@ADA-two hello", agents) == "ada-two"


@spec("route/mention-is-cut")
@pytest.mark.parametrize(
    ("said", "heard"),
    [
        ("@beta hello", "hello"),
        ("@Beta, hello", "hello"),
        ("＠beta：你好", "你好"),
        ("@beta你好", "你好"),
        ("@beta\nhello\n", "hello\n"),
        ("@beta", "@beta"),
        ("@beta  ", "@beta  "),
        ("@betamax hello", "@betamax hello"),
        ("@gamma hello", "@gamma hello"),
        ("hello @beta", "hello @beta"),
        ("@beta @beta twice", "@beta twice"),
    ],
)
def test_the_name_that_calls_an_agent_is_cut_from_what_it_gets(said: str, heard: str) -> None:
    assert without_mention(said, "beta") == heard
