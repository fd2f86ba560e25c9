"""Looks whether everything in an embedded data directory is what was written: the file, the logs, the stored bytes.

Reads only, so it may run beside a host that uses the directory.
"""

from collections.abc import Iterator
from hashlib import file_digest
from pathlib import Path

from paddock.rules.values import Value
from paddock.storage.files.backup import BLOBS
from paddock.storage.sqlite.commands import check_sessions, is_sound, needed_bytes
from paddock.storage.sqlite.connection import FILE_NAME


class Looked(Value, frozen=True):
    """One thing that was looked at, and what is wrong with it."""

    kind: str
    """database, conversation or bytes"""
    name: str
    problem: str | None = None

    @property
    def sentence(self) -> str:
        return f"{self.kind} {self.name}: {self.problem}"


def look(data: Path) -> Iterator[Looked]:
    """Everything there is, one by one."""
    yield Looked("database", FILE_NAME, is_sound(data))
    for session_id, damage in check_sessions(data):
        yield Looked("conversation", session_id, f"fact {damage.seq}: {damage.what}" if damage else None)
    for name in needed_bytes(data / FILE_NAME):
        yield Looked("bytes", name, _problem_of(data, name))


def _problem_of(data: Path, name: str) -> str | None:
    """Bytes that were removed since their row was read are not missing: whoever removes a row does that next."""
    try:
        with (data / BLOBS / name[:2] / name).open("rb") as file:
            return None if file_digest(file, "sha256").hexdigest() == name else "damaged: not what their name says"
    except FileNotFoundError:
        return "missing" if name in set(needed_bytes(data / FILE_NAME)) else None
