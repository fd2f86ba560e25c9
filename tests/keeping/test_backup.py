"""A backup made while the host works is whole, is checked file by file, and a host starts from it as if nothing was."""

import asyncio
import tarfile
from pathlib import Path

import anyio.to_thread
import pytest

from host.calling import a_gateway, a_run, created, ended
from host.scripted import SmallHouse, small_house
from keeping.conversations import THREAD, a_lively_conversation, a_turn
from paddock.storage.files.backup import BackupError, back_up, look, restore
from paddock.storage.files.local import FileBlobs
from paddock.storage.sqlite import SqliteStore
from paddock.storage.sqlite.commands import compare

pytestmark = pytest.mark.anyio


def problems(data: Path) -> list[str]:
    return [looked.sentence for looked in look(data) if looked.problem] + [one.sentence for one in compare(data)]


def a_house(data: Path):
    return small_house(SqliteStore(data), gateway=a_gateway(), blobs=FileBlobs(data / "blobs"))


async def make_files(house: SmallHouse, done: asyncio.Event, made: list[str]) -> None:
    """Runs that each keep a file and speak, until told to stop."""
    while not done.is_set() and len(made) < 400:
        thread = f"0197a000-0000-7000-8000-1{len(made):011d}"
        run = await a_run(house, thread)
        await created(house, run, f"file {len(made)}".encode() * 100)
        await ended(house, run, thread)
        made.append(thread)


@pytest.mark.parametrize("name", ["backup", "backup.tar"])
async def test_a_backup_under_load_is_restored_whole(tmp_path: Path, name: str) -> None:
    data, target, elsewhere = tmp_path / "data", tmp_path / name, tmp_path / "elsewhere"
    made: list[str] = []
    async with a_house(data) as house:
        await house.blobs.open()
        await a_lively_conversation(house)
        done = asyncio.Event()
        working = asyncio.create_task(make_files(house, done, made))
        async with asyncio.timeout(20):
            while len(made) < 5:
                await asyncio.sleep(0.01)
        certain = list(made)
        (data / "plugins" / "a" / ".venv").mkdir(parents=True)
        (data / "plugins" / "a" / "runner.py").write_text("x")
        await anyio.to_thread.run_sync(back_up, data, target)
        done.set()
        await working
        kept = [item.content for item in await house.store.transcript(THREAD)]
        await house.store.close()
    assert len(made) > len(certain)

    restore(target, elsewhere)
    assert problems(elsewhere) == []
    assert sorted(path.name for path in (elsewhere / "plugins" / "a").iterdir()) == ["runner.py"]
    async with a_house(elsewhere) as house:
        await house.blobs.open()
        assert [item.content for item in await house.store.transcript(THREAD)] == kept
        for number, thread in enumerate(certain):
            [row] = await house.store.artifacts_of(thread)
            assert await house.blobs.read(row.sha256, 0, 10_000) == f"file {number}".encode() * 100
        await a_turn(house, "are you there", "as before")
        await house.store.close()
    assert problems(elsewhere) == []


async def a_backup(tmp_path: Path, name: str = "backup") -> Path:
    async with a_house(tmp_path / "data") as house:
        await house.blobs.open()
        run = await a_run(house, THREAD)
        await created(house, run, b"kept")
        await ended(house, run, THREAD)
        await house.store.close()
    back_up(tmp_path / "data", tmp_path / name)
    return tmp_path / name


def changed(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1] + b"\x00")


async def test_a_damaged_backup_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    backup = await a_backup(tmp_path)
    [blob] = (backup / "blobs").glob("??/*")
    manifest = backup / "manifest.json"
    whole = manifest.read_text()
    for spoil, sentence in (
        (lambda: manifest.write_text(whole.replace("sha256", "sha2x6", 1)), "is damaged: its manifest.json"),
        (lambda: manifest.write_text(whole.replace("{", "[", 1).replace("}", "]")), "is damaged: its manifest.json"),
        (lambda: changed(blob) or manifest.write_text(whole), "is damaged: it is not what was backed up"),
        (blob.unlink, "is missing from the backup"),
        (lambda: (backup / "more").write_text("x"), "does not name"),
        (lambda: manifest.write_text("{}"), "is no backup"),
    ):
        spoil()
        with pytest.raises(BackupError, match=sentence):
            restore(backup, tmp_path / "elsewhere")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["backup", "data"]


async def test_a_restore_never_touches_what_is_there(tmp_path: Path) -> None:
    backup = await a_backup(tmp_path)
    with pytest.raises(BackupError, match="is not empty"):
        restore(backup, tmp_path / "data")
    with pytest.raises(BackupError, match="exists already"):
        back_up(tmp_path / "data", backup)
    with pytest.raises(BackupError, match="no data of a host"):
        back_up(tmp_path, tmp_path / "another")
    (tmp_path / "empty").mkdir()
    restore(backup, tmp_path / "empty")
    assert problems(tmp_path / "empty") == []


def a_tar(path: Path, *entries: tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w") as archive:
        for entry in entries:
            archive.addfile(entry)
    return path


def an_entry(name: str, kind: bytes = tarfile.REGTYPE, to: str = "") -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = kind, to
    return entry


@pytest.mark.parametrize(
    "entries",
    [
        [an_entry("../outside.py")],
        [an_entry("/outside.py")],
        [an_entry("way", tarfile.SYMTYPE, ".."), an_entry("way/outside.py")],
        [an_entry("twice", tarfile.LNKTYPE, "../outside.py")],
        [an_entry("pipe", tarfile.FIFOTYPE)],
        [an_entry("same"), an_entry("same")],
    ],
)
async def test_a_tar_that_leads_elsewhere_is_refused(tmp_path: Path, entries: list[tarfile.TarInfo]) -> None:
    bad = a_tar(tmp_path / "bad.tar", *entries)
    with pytest.raises(BackupError, match="is no backup, or is damaged"):
        restore(bad, tmp_path / "elsewhere")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.tar"]


async def test_a_tar_is_restored_by_the_oldest_python_we_run_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """3.11.0 to 3.11.3, Debian 12's among them, know no `filter`: every restore of a file was a TypeError there."""

    def extractall(archive: tarfile.TarFile, path: str = ".", members: object = None) -> None:
        raise AssertionError("not safe in every Python we run on")

    monkeypatch.setattr(tarfile.TarFile, "extractall", extractall)
    await a_backup(tmp_path)
    packed = tmp_path / "backup.tar"
    back_up(tmp_path / "data", packed)
    restore(packed, tmp_path / "elsewhere")
    assert problems(tmp_path / "elsewhere") == []


async def test_what_was_a_program_is_one_after_the_restore(tmp_path: Path) -> None:
    await a_backup(tmp_path)
    program = tmp_path / "data" / "plugins" / "a" / "run.sh"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    back_up(tmp_path / "data", tmp_path / "backup.tar")
    restore(tmp_path / "backup.tar", tmp_path / "elsewhere")
    assert (tmp_path / "elsewhere" / "plugins" / "a" / "run.sh").stat().st_mode & 0o777 == 0o755


async def test_verification_names_what_is_damaged(tmp_path: Path) -> None:
    await a_backup(tmp_path)
    data = tmp_path / "data"
    assert problems(data) == []
    [blob] = (data / "blobs").glob("??/*")
    changed(blob)
    assert problems(data) == [f"bytes {blob.name}: damaged: not what their name says"]
    blob.unlink()
    assert problems(data) == [f"bytes {blob.name}: missing"]
