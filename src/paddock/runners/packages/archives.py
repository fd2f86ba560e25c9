"""A package in one file: a .zip, a .tar.gz, or the archive that hosts share a plugin in.

Loaded when somebody brings one: a host that runs has no use for it.
"""

import gzip
import io
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from paddock.runners.packages.contents import (
    MAX_ENTRIES,
    MAX_RATIO,
    MAX_TOTAL_BYTES,
    Contents,
    PackageDirectory,
    PackageError,
    PackageFile,
    bounded,
    check_kind,
    checked,
)

DAMAGED = (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, RuntimeError)


def read_file(source: Path) -> Contents:
    """The package in an archive. Raises PackageError, and OSError when there is no such file."""
    try:
        return checked(_entries(source))
    except DAMAGED as error:
        raise PackageError(f"{source} is a damaged archive: {error}.") from error


def read_archive(raw: bytes) -> Contents:
    """Read an archive that `packed` made, from an untrusted place. Raises PackageError."""
    try:
        return checked(_from_tar(raw))
    except (OSError, *DAMAGED) as error:
        raise PackageError(f"The archive is damaged: {error}.") from error


def packed(contents: Contents) -> bytes:
    """Pack all files into one archive, equal bytes for equal files. Not compressed: no store has to trust a ratio."""
    raw = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=0, mtime=0) as outer,
        tarfile.open(fileobj=outer, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for file in contents.files:
            entry = tarfile.TarInfo(file.path)
            entry.size, entry.mode = len(file.content), 0o755 if file.executable else 0o644
            archive.addfile(entry, io.BytesIO(file.content))
    return raw.getvalue()


def _entries(source: Path) -> Iterator[PackageFile | PackageDirectory]:
    name = source.name.lower()
    if name.endswith((".zip", ".lbpkg")):
        return _from_zip(_archive(source))
    if name.endswith((".tar.gz", ".tgz")):
        return _from_tar(_archive(source))
    if not source.exists():
        raise PackageError(f"{source} does not exist.")
    raise PackageError(f"{source} is no package: it must be a directory, a .zip or a .tar.gz.")


def _archive(source: Path) -> bytes:
    with source.open("rb") as file:
        raw = file.read(MAX_TOTAL_BYTES + 1)
    if len(raw) > MAX_TOTAL_BYTES:
        raise PackageError(f"{source} is larger than {MAX_TOTAL_BYTES // 1024**2} MiB.")
    return raw


class _Unpacked:
    """Counts what comes out of an archive, and stops a bomb while it is still small."""

    def __init__(self, archive: bytes) -> None:
        self._left = min(MAX_TOTAL_BYTES + 4 * 1024 * MAX_ENTRIES, MAX_RATIO * len(archive))
        self._inflated = MAX_RATIO * len(archive) < MAX_TOTAL_BYTES

    def count(self, size: int) -> None:
        self._left -= size
        if self._left < 0 and self._inflated:
            raise PackageError(f"The archive unpacks to more than {MAX_RATIO} times its size.")
        if self._left < 0:
            raise PackageError(f"The package holds more than {MAX_TOTAL_BYTES // 1024**2} MiB.")


def _from_zip(raw: bytes) -> Iterator[PackageFile | PackageDirectory]:
    if raw.count(b"PK\x01\x02") > 8 * MAX_ENTRIES:  # before the library makes an object of every entry
        raise PackageError(f"The package holds more than {MAX_ENTRIES} entries.")
    unpacked = _Unpacked(raw)
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        for entry in archive.infolist():
            if "\0" in entry.orig_filename:
                raise PackageError(f"The package holds a file with an impossible name: {entry.orig_filename!r}.")
            if entry.is_dir():
                yield PackageDirectory(entry.filename.rstrip("/"))
                continue
            yield _zip_file(archive, entry, unpacked)


def _zip_file(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, unpacked: _Unpacked) -> PackageFile:
    mode = entry.external_attr >> 16
    if stat.S_IFMT(mode):
        check_kind(mode, entry.filename)
    if entry.flag_bits & 0x1:
        raise PackageError(f"The package holds an encrypted file ({entry.filename!r}).")
    unpacked.count(entry.file_size)
    with archive.open(entry) as file:
        return PackageFile(entry.filename, bounded(file, entry.filename), bool(mode & stat.S_IXUSR))


class _CountedGzip(io.RawIOBase):
    """The unpacked bytes of a .gz, as far as the count allows."""

    def __init__(self, raw: bytes) -> None:
        self._file = gzip.GzipFile(fileobj=io.BytesIO(raw))
        self._unpacked = _Unpacked(raw)

    def read(self, size: int = -1, /) -> bytes:
        data = self._file.read(min(size, 65536) if size >= 0 else 65536)
        self._unpacked.count(len(data))
        return data


def _from_tar(raw: bytes) -> Iterator[PackageFile | PackageDirectory]:
    with tarfile.open(fileobj=_CountedGzip(raw), mode="r|", errorlevel=2) as archive:
        for entry in archive:
            name = entry.name.removeprefix("./").rstrip("/")
            if entry.isdir():
                if name not in {"", "."}:
                    yield PackageDirectory(name)
                continue
            yield _tar_file(archive, entry, name)


def _tar_file(archive: tarfile.TarFile, entry: tarfile.TarInfo, name: str) -> PackageFile:
    if entry.issym() or entry.islnk():
        raise PackageError(f"The package holds a link ({name!r}); it may hold plain files only.")
    file = archive.extractfile(entry) if entry.isreg() and not entry.issparse() else None
    if file is None:
        raise PackageError(f"The package holds a device or another special file ({name!r}).")
    return PackageFile(name, bounded(file, name), bool(entry.mode & stat.S_IXUSR))
