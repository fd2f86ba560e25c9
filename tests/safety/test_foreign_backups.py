"""A backup that somebody else prepared brings data and installed plugins, and nothing that a host obeys by its name."""

import asyncio
import json
import os
import tarfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from paddock.storage.files.backup import BackupError, back_up, restore
from paddock.storage.sqlite import SqliteStore


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    async def make() -> None:
        store = SqliteStore(tmp_path / "data")
        await store.open()
        await store.close()

    asyncio.run(make())
    back_up(tmp_path / "data", tmp_path / "backup")
    return tmp_path / "backup"


def named(backup: Path, name: str, text: bytes) -> None:
    """Put a file in, and name it in the manifest as if it had been there."""
    file, manifest = backup / name, backup / "manifest.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text)
    told = json.loads(manifest.read_text())
    told["files"][name] = {"sha256": sha256(text).hexdigest(), "size": len(text)}
    manifest.write_text(json.dumps(told))


def packed(backup: Path) -> Path:
    with tarfile.open(backup.with_suffix(".tar"), "w") as archive:
        for path in sorted(backup.rglob("*")):
            archive.add(path, str(path.relative_to(backup)), recursive=False)
    return backup.with_suffix(".tar")


def as_it_is(backup: Path) -> Path:
    return backup


@pytest.mark.parametrize("form", [as_it_is, packed])
@pytest.mark.parametrize(
    "name", ["paddock.toml", "cluster-secret", "signing-keys.json", "local-token", "homes/a/b/x.py", "agents.yaml"]
)
def test_a_backup_with_more_than_backups_hold_is_refused(
    backup: Path, tmp_path: Path, name: str, form: Callable[[Path], Path]
) -> None:
    named(backup, name, b"tools = ['/tmp/somebody.py']")
    with pytest.raises(BackupError, match=f"the backup holds {name}, which no backup does"):
        restore(form(backup), tmp_path / "restored")
    assert not (tmp_path / "restored").exists()


def test_a_backup_is_not_read_through_links_or_devices(backup: Path, tmp_path: Path) -> None:
    (backup / "blobs" / "aa").mkdir(parents=True)
    strange = backup / "blobs" / "aa" / "strange"
    for make in (
        lambda: strange.symlink_to("/etc/passwd"),
        lambda: strange.symlink_to("/dev/zero"),
        lambda: strange.symlink_to(tmp_path),
        lambda: os.mkfifo(strange),
    ):
        make()
        with pytest.raises(BackupError, match="is no plain file, so this is no backup"):
            restore(backup, tmp_path / "restored")
        strange.unlink()
    strange.parent.rmdir()
    restore(backup, tmp_path / "restored")


def test_a_manifest_that_is_nested_without_end_is_one_sentence(backup: Path, tmp_path: Path) -> None:
    (backup / "manifest.json").write_text("[" * 100_000)
    with pytest.raises(BackupError, match="this is no backup, or it is damaged"):
        restore(backup, tmp_path / "restored")
