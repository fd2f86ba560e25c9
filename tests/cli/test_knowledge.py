"""`paddock knowledge`: what goes wrong is one sentence and an exit code."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.terminals import Person
from walk.hosts import HostProcess
from warm import Command

ERASED = "\x1b[2K"
"""What a terminal is told to take a line away."""


def without_colours(screen: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", screen)


@pytest.fixture
def there(served: HostProcess) -> tuple[str, str]:
    return "--data", str(served.data)


def test_files_that_cannot_be_read_fail_and_the_others_are_found(
    paddock: Command, there: tuple[str, str], tmp_path: Path
) -> None:
    (tmp_path / "good.txt").write_text("needle")
    (tmp_path / "bad.pdf").write_bytes(b"%PDF-1.4 rubbish")
    assert paddock("knowledge", "create", "mixed", *there).returncode == 0
    (tmp_path / "empty.md").touch()
    (tmp_path / "my notes").mkdir()
    done = paddock("knowledge", "add", "mixed", "missing.md", "my notes", "empty.md", "good.txt", "bad.pdf", *there)
    assert done.returncode == 1
    assert done.stdout == "good.txt: 1 passage\n"
    missing, notes, empty, bad = done.stderr.splitlines()
    assert missing == "missing.md: it cannot be read: No such file or directory"
    assert notes == "my notes: it is a directory; name the files in it: 'my notes'/*"
    assert empty == "empty.md: the document is empty"
    assert "bad.pdf cannot be read: the PDF is damaged" in bad
    assert "good.txt" in paddock("knowledge", "search", "mixed", "needle", *there).stdout
    assert paddock("knowledge", "delete", "mixed", "--yes", *there).returncode == 0


def test_files_of_one_name_are_called_by_their_paths_and_none_takes_the_place_of_another(
    paddock: Command, there: tuple[str, str], tmp_path: Path
) -> None:
    for place, words in (("a", "apples"), ("b", "pears")):
        (tmp_path / place).mkdir()
        (tmp_path / place / "README.md").write_text(words)
    assert paddock("knowledge", "create", "twins", *there).returncode == 0
    done = paddock("knowledge", "add", "twins", "a/README.md", "b/README.md", *there)
    assert done.stdout == "a/README.md: 1 passage\nb/README.md: 1 passage\n"
    assert "a/README.md (characters" in paddock("knowledge", "search", "twins", "apples", *there).stdout
    (tmp_path / "a" / "README.md").write_text("cherries")
    for alone in ("a/README.md", tmp_path / "a" / "README.md"):
        paddock("knowledge", "add", "twins", alone, *there)
        listed = paddock("knowledge", "list", "twins", *there).stdout.splitlines()
        assert sorted(line.split("\t")[1] for line in listed) == ["a/README.md", "b/README.md"]
    assert paddock("knowledge", "search", "twins", "apples", *there).stdout == "", "the new version took its place"
    assert paddock("knowledge", "delete", "twins", "--yes", *there).returncode == 0


def test_whoever_looks_sees_how_far_each_file_is_and_in_the_end_only_what_came_of_it(
    paddock: Command, person: Callable[..., Person], there: tuple[str, str], tmp_path: Path
) -> None:
    names = ("first.txt", "second.txt")
    for name in names:
        (tmp_path / name).write_text("\n\n".join(f"{name} {number} " + "words " * 150 for number in range(40)))
    assert paddock("knowledge", "create", "watched", *there).returncode == 0
    reader = person("knowledge", "add", "watched", *(tmp_path / name for name in names), *there)
    assert reader.leaves() == 0
    bars, told = without_colours(reader.screen).rsplit(ERASED, 1)
    for name in names:
        [count] = re.findall(rf"{name}: (\d+) passages", told)
        assert int(count) > 10
        assert re.search(rf"{name} +\[#+\] +{count}/{count}", bars), f"no whole bar of {name} in {bars!r}"
    assert "being read" in bars
    assert "None" not in bars
    assert "━" not in told, "what stays is what came of it"
    quiet = paddock("knowledge", "add", "watched", "first.txt", *there)
    assert (quiet.stderr, "━" in quiet.stdout) == ("", False), "who does not look sees no bar"
    assert paddock("knowledge", "delete", "watched", "--yes", *there).returncode == 0


def test_a_whole_base_is_deleted_only_after_a_yes(
    paddock: Command, person: Callable[..., Person], there: tuple[str, str], tmp_path: Path
) -> None:
    (tmp_path / "one.txt").write_text("kept words")
    assert paddock("knowledge", "create", "kept", *there).returncode == 0
    assert paddock("knowledge", "add", "kept", "one.txt", *there).returncode == 0
    unasked = paddock("knowledge", "delete", "kept", *there)
    assert (unasked.returncode, unasked.stdout) == (2, "kept has 1 document.\n")
    assert "Deleting all of it needs a yes. Run it in a terminal, or add --yes" in unasked.stderr
    hesitant = person("knowledge", "delete", "kept", *there)
    hesitant.sees("kept has 1 document.")
    hesitant.sees("Delete all of it? [y/N]")
    hesitant.press("\r")
    hesitant.sees("Not deleted.")
    assert hesitant.leaves() == 1
    assert "kept words" in paddock("knowledge", "search", "kept", "words", *there).stdout
    sure = person("knowledge", "delete", "kept", *there)
    sure.sees("[y/N]")
    sure.press("y\r")
    sure.sees("Deleted the knowledge base kept.")
    assert sure.leaves() == 0


def test_mistakes_are_told_in_a_sentence(paddock: Command, there: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / "here.txt").write_text("x")
    for words, sentence in (
        (("add", "nowhere", "here.txt", "here.txt"), "there is no knowledge base 'nowhere'"),
        (("search", "nowhere", "x"), "there is no knowledge base 'nowhere'"),
        (("create", "Not An Id"), "a knowledge base's id has 1 to 64"),
        (("delete", "nowhere"), "there is no knowledge base 'nowhere'"),
        (("delete", "nowhere", "a.txt"), "there is no knowledge base 'nowhere'"),
    ):
        done = paddock("knowledge", *words, *there)
        assert done.returncode == 1, words
        assert sentence in done.stderr
        assert "Traceback" not in done.stderr


def test_without_a_host_it_says_how_to_start_one(paddock: Command, tmp_path: Path) -> None:
    done = paddock("knowledge", "list", "--data", tmp_path / "none")
    assert done.returncode == 1
    assert "paddock serve" in done.stderr
