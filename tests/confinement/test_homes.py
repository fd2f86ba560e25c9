"""Homes of plugins: what an older version kept there is found again, and nothing that lies in wait is followed."""

import os
from pathlib import Path

import pytest

from paddock.confinement.homes import Homes

KEY, OTHER = "a" * 32, "b" * 32


@pytest.fixture
def homes(tmp_path: Path) -> Homes:
    return Homes(tmp_path / "homes")


def test_what_an_older_version_kept_of_conversations_is_moved_and_found_under_its_old_name(
    homes: Homes, tmp_path: Path
) -> None:
    home = tmp_path / "homes" / "paddock" / "codex"
    (home / "conversations" / KEY).mkdir(parents=True)
    (home / "conversations" / KEY / "session").write_text("remembered")
    (home / "conversations" / OTHER).symlink_to("/etc")
    (home / "program").touch()
    assert homes.home("paddock", "codex") == home
    place = homes.place_of_one("paddock", "codex", KEY, None)
    assert not place.is_relative_to(home)
    assert (place / "session").read_text() == "remembered"
    assert (home / "conversations" / KEY / "session").read_text() == "remembered", "runners know it by this path"
    assert not os.path.lexists(home / "conversations" / OTHER), "a link is nobody's conversation"
    assert (home / "program").exists()


def test_what_an_older_version_kept_for_processes_that_serve_many_runs_is_theirs_again(
    homes: Homes, tmp_path: Path
) -> None:
    kept = tmp_path / "homes" / "test" / "shared" / "conversations" / KEY
    kept.mkdir(parents=True)
    (kept / "session").write_text("remembered")
    homes.home("test", "shared", shared=True)
    assert (homes.place_of_many("test", "shared", None) / KEY / "session").read_text() == "remembered"


def test_a_move_that_was_cut_short_is_finished(homes: Homes, tmp_path: Path) -> None:
    begun = tmp_path / "conversations" / "one" / "paddock" / ".codex" / KEY
    begun.mkdir(parents=True)
    (begun / "session").touch()
    left = tmp_path / "homes" / "paddock" / "codex" / "conversations" / OTHER
    left.mkdir(parents=True)
    home = homes.home("paddock", "codex")
    assert sorted(path.name for path in (home / "conversations").iterdir()) == [KEY, OTHER]
    assert (home / "conversations" / KEY / "session").exists()


def test_what_a_plugin_puts_in_the_place_of_the_link_is_never_moved(homes: Homes, tmp_path: Path) -> None:
    home = homes.home("test", "nasty")
    (home / "conversations").unlink()
    (home / "conversations" / KEY).mkdir(parents=True)
    (home / "conversations" / KEY / "planted").touch()
    homes.home("test", "nasty")
    assert list(homes.place_of_one("test", "nasty", KEY, None).iterdir()) == []


def test_a_forgotten_conversation_is_removed_from_every_place_and_no_other_is(homes: Homes, tmp_path: Path) -> None:
    for name in ("one", "two"):
        homes.home("test", name)
        for key in (KEY, OTHER):
            (homes.place_of_one("test", name, key, None) / "session").touch()
            (homes.place_of_many("test", name, None) / key).mkdir()
    (tmp_path / "homes" / "test" / "old" / "conversations" / KEY).mkdir(parents=True)
    homes.forget(KEY, pytest.fail)
    assert [*tmp_path.rglob(KEY)] == []
    assert len([*tmp_path.rglob(OTHER)]) == 4
