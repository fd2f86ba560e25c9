"""The files by which a running host says that it is there."""

import json
import os
import stat
from pathlib import Path

import pytest

from paddock.cli import presence


def test_a_host_can_be_found_while_it_says_so_and_not_after(tmp_path: Path) -> None:
    with presence.announced(tmp_path, url="http://127.0.0.1:1", token="t"):
        assert presence.find(tmp_path) == presence.Presence("http://127.0.0.1:1", os.getpid(), "t")
    assert presence.find(tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def test_only_the_owner_can_read_the_token_even_under_a_generous_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with presence.announced(tmp_path, url="u", token="t"):
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert modes == {"serve.json": 0o600, "local-token": 0o600}


def test_what_a_killed_host_left_behind_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "local-token").write_text("old\n")
    (tmp_path / "serve.json").write_text(json.dumps({"url": "old", "pid": 1}))
    with presence.announced(tmp_path, url="new", token="fresh"):
        assert presence.find(tmp_path) == presence.Presence("new", os.getpid(), "fresh")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"url": 1}', '{"url": "u", "pid": "x"}'])
def test_a_damaged_file_means_no_host(tmp_path: Path, text: str) -> None:
    (tmp_path / "local-token").write_text("t")
    (tmp_path / "serve.json").write_text(text)
    assert presence.find(tmp_path) is None
