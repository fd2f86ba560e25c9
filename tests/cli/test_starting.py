"""`paddock serve` is read in two ways, plainly and by the library of the command line: they must agree."""

import pytest

from paddock.cli.app import app
from paddock.cli.hosting import starting
from paddock.cli.hosting.starting import ONCE, REPEATED, plain_flags

SERVE = app.commands["serve"]
OPTIONS = {parameter.name: parameter for parameter in SERVE.params if parameter.name != "help"}


def test_every_option_of_serve_is_read_plainly_too() -> None:
    assert {name: option.multiple for name, option in OPTIONS.items()} == {
        **dict.fromkeys(ONCE, False),
        **dict.fromkeys(REPEATED, True),
    }
    assert all(option.opts == ["--" + name.replace("_", "-")] for name, option in OPTIONS.items())


@pytest.mark.parametrize("joined", [True, False])
@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_both_ways_hand_over_the_same(name: str, monkeypatch: pytest.MonkeyPatch, *, joined: bool) -> None:
    option = OPTIONS[name].opts[0]
    words = ["serve", *([f"{option}=some where"] if joined else [option, "some where"])]
    asked: list[dict[str, object]] = []
    monkeypatch.setattr(starting, "start", asked.append)
    app(words, standalone_mode=False)
    by_the_library = {key: value for key, value in asked[0].items() if value is not None}
    assert plain_flags(words) == ({key: _plain(value) for key, value in by_the_library.items()})


def _plain(value: object) -> object:
    return value if isinstance(value, list) else str(value)


def test_repeated_options_are_kept_in_order() -> None:
    assert plain_flags(["serve", "--plugins", "a", "--port=0", "--plugins=b"]) == {"plugins": ["a", "b"], "port": "0"}


def test_serve_alone_asks_for_nothing() -> None:
    assert plain_flags(["serve"]) == {}


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["chat"],
        ["--debug", "serve"],
        ["serve", "--help"],
        ["serve", "now"],
        ["serve", "--port"],
        ["serve", "--port", "--data"],
        ["serve", "--port", "1", "--port", "2"],
        ["serve", "--prt", "1"],
        ["serve", "--log_level", "info"],
        ["serve", "-p", "1"],
    ],
)
def test_what_is_not_plain_is_left_to_the_library(words: list[str]) -> None:
    assert plain_flags(words) is None
