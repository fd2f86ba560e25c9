"""One process owns a data directory; the next is told by whom, and a dead owner holds nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from paddock.rules.errors import StorageUnavailableError
from paddock.storage.files.lock import DataDirectory, DataDirectoryInUseError

HOLD = """
import sys, time
from pathlib import Path
from paddock.storage.files.lock import DataDirectory
with DataDirectory.lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_owner_is_refused_with_the_pid_of_the_first(tmp_path: Path) -> None:
    with (
        DataDirectory.lock(tmp_path),
        pytest.raises(DataDirectoryInUseError, match=f"in use by process {os.getpid()}"),
        DataDirectory.lock(tmp_path),
    ):
        pass
    with DataDirectory.lock(tmp_path) as path:
        assert path == tmp_path


def test_a_killed_owner_holds_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout
        assert child.stdout.readline() == "held\n"
        with pytest.raises(DataDirectoryInUseError, match=str(child.pid)), DataDirectory.lock(tmp_path):
            pass
        child.kill()
        child.wait()
        with DataDirectory.lock(tmp_path):
            pass


def test_the_directory_is_made_for_its_owners_eyes_only(tmp_path: Path) -> None:
    with DataDirectory.lock(tmp_path / "a" / "b") as path:
        assert path.stat().st_mode & 0o777 == 0o700
        assert (path / "lock").stat().st_mode & 0o777 == 0o600


def test_a_place_where_nothing_can_be_made_is_refused_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageUnavailableError, match="cannot be made"), DataDirectory.lock(tmp_path / "file" / "data"):
        pass
