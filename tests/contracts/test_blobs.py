"""What every place for bytes promises, and what files promise when the machine or the disk misbehaves."""

import asyncio
import os
import uuid
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from hashlib import sha256
from pathlib import Path

import pytest

from paddock.ports.artifacts import Blob, Blobs
from paddock.rules.errors import ErrorCode, HostError, StorageUnavailableError
from paddock.storage.files.local import FileBlobs
from s3_server import an_imitation_of_s3

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """A bucket of moto's server, which imitates S3."""
    with an_imitation_of_s3() as address:
        yield address


@pytest.fixture(params=["files", "s3"])
async def blobs(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Blobs:
    plug: Blobs
    match request.param:
        case "files":
            plug = FileBlobs(tmp_path / "blobs")
        case _:
            from paddock.storage.files.s3 import S3Blobs

            for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
                monkeypatch.setenv(name, "test")
            address = request.getfixturevalue("bucket").replace("/?", f"/{uuid.uuid4().hex}?")
            plug = S3Blobs(address, beside=tmp_path / "beside", grace=timedelta(0))
    await plug.open()
    return plug


@pytest.fixture
async def files(tmp_path: Path) -> FileBlobs:
    plug = FileBlobs(tmp_path / "blobs")
    await plug.open()
    return plug


async def pieces(*content: bytes) -> AsyncIterator[bytes]:
    for piece in content:
        yield piece


async def keep(blobs: Blobs, *content: bytes) -> Blob:
    async with blobs.keep(pieces(*content), max_bytes=1_000_000) as blob:
        return blob


async def unneeded() -> bool:
    return False


async def needed() -> bool:
    return True


def stored(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file()]


async def test_bytes_are_kept_under_their_hash_and_read_in_ranges(blobs: Blobs) -> None:
    blob = await keep(blobs, b"hello ", b"world")
    assert blob == Blob(sha256(b"hello world").hexdigest(), 11, b"hello world")
    assert await blobs.read(blob.sha256, 0, 100) == b"hello world"
    assert await blobs.read(blob.sha256, 6, 3) == b"wor"
    assert await blobs.read(blob.sha256, 50, 3) == b""


async def test_nothing_at_all_can_be_kept_too(blobs: Blobs) -> None:
    blob = await keep(blobs)
    assert (blob.size, await blobs.read(blob.sha256, 0, 1)) == (0, b"")


async def test_too_many_bytes_are_refused_while_they_come_and_nothing_is_left(blobs: Blobs) -> None:
    taken: list[bytes] = []

    async def endless() -> AsyncIterator[bytes]:
        while True:
            taken.append(b"x" * 1000)
            yield taken[-1]

    with pytest.raises(HostError) as refused:
        async with blobs.keep(endless(), max_bytes=10_000):
            pytest.fail("kept")
    assert (refused.value.code, len(taken)) == (ErrorCode.PAYLOAD_TOO_LARGE, 11)
    assert [name async for group in blobs.older_than(-60) for name in group] == []


async def test_removed_bytes_are_gone_and_removing_them_again_does_no_harm(blobs: Blobs) -> None:
    blob = await keep(blobs, b"x")
    assert await blobs.remove(blob.sha256, needed=unneeded)
    assert await blobs.remove(blob.sha256, needed=unneeded)
    with pytest.raises(HostError) as lost:
        await blobs.read(blob.sha256, 0, 1)
    assert lost.value.code is ErrorCode.RUNTIME_ERROR


async def test_bytes_that_somebody_keeps_or_needs_are_not_removed(blobs: Blobs) -> None:
    async with blobs.keep(pieces(b"x"), max_bytes=10) as blob:
        assert not await blobs.remove(blob.sha256, needed=unneeded)
    assert not await blobs.remove(blob.sha256, needed=needed)
    assert await blobs.read(blob.sha256, 0, 1) == b"x"


async def test_bytes_that_are_kept_again_while_it_is_asked_whether_they_are_needed_stay(blobs: Blobs) -> None:
    blob = await keep(blobs, b"x")

    async def kept_meanwhile() -> bool:
        await keep(blobs, b"x")
        return False

    assert not await blobs.remove(blob.sha256, needed=kept_meanwhile)
    assert await blobs.read(blob.sha256, 0, 1) == b"x"


async def test_only_bytes_that_have_lain_there_a_while_are_told(blobs: Blobs) -> None:
    blob = await keep(blobs, b"x")
    assert [name async for group in blobs.older_than(60) for name in group] == []
    assert [name async for group in blobs.older_than(-60) for name in group] == [blob.sha256]


# --- files -----------------------------------------------------------------------------------------------------------


async def test_the_same_bytes_are_kept_once_also_when_brought_at_once(files: FileBlobs, tmp_path: Path) -> None:
    await asyncio.gather(*(keep(files, b"same") for _ in range(8)))
    assert len(stored(tmp_path)) == 1
    assert stored(tmp_path)[0].stat().st_mode & 0o777 == 0o600


async def test_keeping_bytes_again_makes_them_young(files: FileBlobs, tmp_path: Path) -> None:
    await keep(files, b"x")
    os.utime(stored(tmp_path)[0], (1, 1))
    await keep(files, b"x")
    assert [name async for group in files.older_than(60) for name in group] == []


@pytest.mark.parametrize(
    "name", ["", "..", "../../etc/passwd", "A" * 64, "a" * 63, "a" * 64 + "\n", "/" * 64, "a/../" * 13]
)
async def test_no_name_but_a_hash_ever_becomes_a_path(files: FileBlobs, name: str) -> None:
    with pytest.raises(HostError):
        await files.read(name, 0, 1)
    with pytest.raises(HostError):
        await files.remove(name, needed=unneeded)


async def test_what_a_dead_process_was_writing_is_swept_at_the_start(tmp_path: Path) -> None:
    files = FileBlobs(tmp_path / "blobs")
    await files.open()
    (tmp_path / "blobs" / "unfinished" / "half").write_bytes(b"half")
    await files.open()
    assert stored(tmp_path) == []


@pytest.mark.parametrize("how", ["flip", "cut"])
async def test_damaged_bytes_are_never_handed_out(files: FileBlobs, tmp_path: Path, how: str) -> None:
    blob = await keep(files, b"precious bytes")
    assert await files.read(blob.sha256, 0, 3) == b"pre"
    path = stored(tmp_path)[0]
    path.write_bytes(b"Precious bytes" if how == "flip" else b"precious")
    os.utime(path, (7, 7))
    with pytest.raises(HostError) as damaged:
        await files.read(blob.sha256, 3, 2)
    assert "damaged" in damaged.value.message


async def test_the_file_is_synced_before_it_gets_its_name_and_the_directory_after(
    files: FileBlobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await keep(files, b"first makes the directories")
    steps: list[str] = []
    real_sync, real_replace = os.fsync, Path.replace

    def sync(number: int) -> None:
        steps.append("directory" if os.path.isdir(f"/proc/self/fd/{number}") else "file")  # noqa: PTH112
        real_sync(number)

    def replace(path: Path, target: Path) -> Path:
        steps.append("rename")
        return real_replace(path, target)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(Path, "replace", replace)
    await keep(files, b"x")
    assert steps == ["file", *["directory"] * (len(steps) - 3), "rename", "directory"]


async def test_a_disk_that_refuses_is_said_and_leaves_nothing(
    files: FileBlobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageUnavailableError, match="No space left"):
        await keep(files, b"x")
    assert stored(tmp_path) == []
