"""The schema steps shipped with this program: files named `0001_what_it_does.sql`, one folder per dialect."""

from collections.abc import Sequence
from importlib import resources

from paddock.rules.rows.migrations import Migration


def shipped_migrations(dialect: str) -> Sequence[Migration]:
    """All steps of one dialect, in order."""
    folder = resources.files("paddock.storage").joinpath("sql", dialect)
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [_read(name, folder.joinpath(name).read_text(encoding="utf-8")) for name in names]


def _read(file_name: str, sql: str) -> Migration:
    number, _, name = file_name.removesuffix(".sql").partition("_")
    return Migration(int(number), name, sql)
