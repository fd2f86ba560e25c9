"""What the host does in trees of strangers follows no link, and no tree is too deep, too closed or too large for it."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from paddock.confinement import trees

NOBODY = 65534
AS_ROOT = os.geteuid() == 0


def deep(top: Path, levels: int) -> None:
    """So many directories inside each other, deeper than any path may be long."""
    top.mkdir()
    folder = os.open(top, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("directory", dir_fd=folder)
        inner = os.open("directory", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=folder))
    os.close(folder)


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "outside"
    place.mkdir()
    (place / "precious").write_text("x" * 5000)
    yield place
    assert (place / "precious").read_text() == "x" * 5000
    assert (place / "precious").stat().st_uid == os.geteuid()


def test_removing_follows_no_link(tmp_path: Path, outside: Path) -> None:
    (tmp_path / "tree" / "inner").mkdir(parents=True)
    (tmp_path / "tree" / "inner" / "link").symlink_to(outside)
    (tmp_path / "link").symlink_to(outside)
    with trees.inside(tmp_path) as folder:
        for name in ("tree", "link", "nothing"):
            trees.remove(folder, name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "outside"]


def test_a_tree_deeper_than_any_path_is_removed(tmp_path: Path) -> None:
    deep(tmp_path / "tree", 3000)
    with trees.inside(tmp_path) as folder:
        trees.remove(folder, "tree")
    assert list(tmp_path.iterdir()) == []


def test_directories_that_their_owner_closed_are_removed(tmp_path: Path) -> None:
    (tmp_path / "tree" / "read" / "none").mkdir(parents=True)
    (tmp_path / "tree" / "read" / "file").touch()
    (tmp_path / "tree" / "read" / "none").chmod(0)
    (tmp_path / "tree" / "read").chmod(0o500)
    if AS_ROOT:
        for path in (tmp_path, *(tmp_path / name for name in ("tree", "tree/read", "tree/read/none"))):
            os.chown(path, NOBODY, NOBODY)
    as_normal_user(tmp_path, lambda folder: trees.remove(folder, "tree"))
    assert list(tmp_path.iterdir()) == []


def as_normal_user(folder: Path, work: Callable[[int], None]) -> None:
    """Work in a directory in a child that modes stop, as they do not stop root."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.chdir(folder)
            if AS_ROOT:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            with trees.inside(Path()) as here:
                work(here)
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_bytes_are_counted_without_links_and_in_no_tree_without_end(tmp_path: Path, outside: Path) -> None:
    (tmp_path / "tree" / "inner").mkdir(parents=True)
    (tmp_path / "tree" / "inner" / "file").write_bytes(b"x" * 900)
    (tmp_path / "tree" / "link").symlink_to(outside)
    deep(tmp_path / "deep", trees.MAX_DEPTH + 1)
    with trees.inside(tmp_path, "tree") as tree, trees.inside(tmp_path, "deep") as too_deep:
        assert trees.fits(tree, 1000)
        assert not trees.fits(tree, 800)
        assert not trees.fits(too_deep, 1_000_000), "what cannot be counted does not fit"


@pytest.mark.skipif(not AS_ROOT, reason="only root gives files away")
def test_giving_follows_no_link_and_takes_nothing_from_others(tmp_path: Path, outside: Path) -> None:
    (tmp_path / "tree" / "inner").mkdir(parents=True)
    (tmp_path / "tree" / "inner" / "link").symlink_to(outside)
    (tmp_path / "tree" / "mine").touch()
    (tmp_path / "theirs").touch()
    os.chown(tmp_path / "theirs", 4711, 4711)
    (tmp_path / "tree" / "hard").hardlink_to(tmp_path / "theirs")
    with trees.inside(tmp_path, "tree") as tree:
        trees.give(tree, NOBODY)
    given = [tmp_path / "tree", tmp_path / "tree" / "inner", tmp_path / "tree" / "mine"]
    assert {path.stat().st_uid for path in given} == {NOBODY}
    assert (tmp_path / "theirs").stat().st_uid == 4711


def test_no_name_and_no_pinned_path_goes_through_a_link(tmp_path: Path, outside: Path) -> None:
    (tmp_path / "link").symlink_to(outside)
    with pytest.raises(OSError), trees.inside(tmp_path, "link"):
        pass
    with pytest.raises(OSError, match="link is a link"):
        trees.pinned(tmp_path / "link" / "precious")
    assert trees.pinned(outside).inode == outside.stat().st_ino
