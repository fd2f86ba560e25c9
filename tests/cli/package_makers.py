"""Make packages, honest and nasty, for the tests."""

import io
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

PLUGIN = """\
[plugin]
author = "me"
name = "demo"
version = "1.0"
description = "A demo."
command = ["python", "runner.py"]
[permissions]
history = ["page"]
"""
HONEST = {"paddock-plugin.toml": PLUGIN.encode(), "runner.py": b"print('hi')\n"}


def a_directory(path: Path, files: Mapping[str, bytes] = HONEST) -> Path:
    for name, content in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)
    return path


def a_zip(path: Path, files: Mapping[str, bytes] = HONEST, *extra: tuple[zipfile.ZipInfo, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        for info, content in extra:
            archive.writestr(info, content)
    return path


def a_tar(path: Path, files: Mapping[str, bytes] = HONEST, *extra: tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        for info in extra:
            archive.addfile(info, io.BytesIO(b"\0" * info.size))
    return path


def a_tar_entry(name: str, kind: bytes, link: str = "", size: int = 0) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, size
    return info


def a_zip_entry(name: str, mode: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    info.create_system = 3
    return info
