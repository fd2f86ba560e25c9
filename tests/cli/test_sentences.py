"""What a command says when it fails is a sentence, and no class is named in it."""

from pathlib import Path

import pytest

from cli.conftest import Command
from safety.test_sentences import CLASS

WRONG = [
    ("no-such-command",),
    ("serve", "--port", "words"),
    ("serve", "--port", "70000"),
    ("serve", "--agents", "missing.yaml"),
    ("serve", "--agents", "broken.yaml"),
    ("agents", "check", "broken.yaml"),
    ("keys", "create"),
    ("chat", "--url", "not an address", "hello"),
    ("chat", "--url", "http://127.0.0.1:1", "hello"),
    ("runner", "check", "nowhere"),
    ("plugins", "install", "nowhere"),
    ("backup", "create", "/proc/nowhere/x"),
]


@pytest.mark.parametrize("words", WRONG, ids=" ".join)
def test_a_command_that_fails_says_so_in_a_sentence(paddock: Command, tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "broken.yaml").write_text("agents: {one: {runner: 7, tools: {a: 1}}, two: []}\n")
    done = paddock(*words, timeout=60)
    assert done.returncode != 0
    said = done.stderr + done.stdout
    assert said.strip()
    assert not CLASS.search(said), said
