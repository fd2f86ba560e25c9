"""Under which names files go into a knowledge base."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from paddock.rules.search.passages import document_names


@pytest.mark.parametrize(
    ("files", "known", "names"),
    [
        (["notes.md"], [], ["notes.md"]),
        (["deep/down/notes.md"], [], ["notes.md"]),
        (["a/README.md", "b/README.md", "c.md"], [], ["a/README.md", "b/README.md", "c.md"]),
        (["/home/ann/a/README.md", "/home/ann/b/README.md"], [], ["a/README.md", "b/README.md"]),
        (["README.md", "sub/README.md"], [], ["README.md", "sub/README.md"]),
        (["a/README.md", "c/a/README.md"], ["a/README.md"], ["a/README.md", "c/a/README.md"]),
        (["/README.md", "README.md"], [], ["/README.md", "README.md"]),
        (["here.txt", "./here.txt"], [], ["here.txt", "here.txt"]),
    ],
)
def test_namesakes_are_called_by_the_shortest_tails_that_tell_them_apart(
    files: Sequence[str], known: Sequence[str], names: Sequence[str]
) -> None:
    assert document_names([Path(one) for one in files], known) == names
    assert document_names([Path(one) for one in reversed(files)], known) == list(reversed(names))


@pytest.mark.parametrize(
    ("file", "known", "name"),
    [
        ("a/README.md", ["a/README.md", "b/README.md"], "a/README.md"),
        ("/home/ann/a/README.md", ["README.md", "a/README.md"], "a/README.md"),
        ("/home/ann/a/README.md", ["/home/ann/a/README.md"], "/home/ann/a/README.md"),
        ("a/README.md", ["README.md"], "README.md"),
        ("c/README.md", ["a/README.md"], "README.md"),
    ],
)
def test_a_file_given_alone_keeps_the_name_it_has_in_the_base(file: str, known: Sequence[str], name: str) -> None:
    assert document_names([Path(file)], known) == [name]
