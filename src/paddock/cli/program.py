"""How commands are written in hints: the way this program was called, with the options that lead to the same place."""

import shlex
import shutil
import sys
from pathlib import Path

NAME = "paddock"


def program() -> str:
    """`paddock` where typing that finds this very program, else the path it was called by."""
    called = sys.argv[0] if sys.argv else ""
    if Path(called).name != NAME or "/" not in called:
        return NAME
    found = shutil.which(NAME)
    return NAME if found and Path(found).absolute() == Path(called).absolute() else shlex.quote(called)


def command(words: str, *, url: str | None = None, data: Path | None = None) -> str:
    """A command that can be typed as it is, for the host that was asked for here."""
    return f"{program()} {words}{_place(url, data)}"


def _place(url: str | None, data: Path | None) -> str:
    at_url = f" --url {shlex.quote(url)}" if url else ""
    return at_url + (f" --data {shlex.quote(str(data))}" if data else "")
