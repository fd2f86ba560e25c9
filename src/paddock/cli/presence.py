"""Files of the data directory through which a running host is found: its address and a token.

Whoever may read the token (mode 0600) acts as the host's administrator, so the command line needs no key on the
machine of the host. Nothing here talks to the host.
"""

import json
import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from paddock.cli.output import USAGE, CommandError

ADDRESS_FILE = "serve.json"
TOKEN_FILE = "local-token"  # noqa: S105 - the name of a file, not what is in it
DEFAULT_DATA = ".paddock"


@dataclass(frozen=True, slots=True)
class Presence:
    url: str
    pid: int
    token: str


def data_directory(flag: Path | None) -> Path:
    """The data directory without reading any settings: what was asked for, else PADDOCK_DATA, else the default."""
    return flag or Path(os.environ.get("PADDOCK_DATA") or DEFAULT_DATA).expanduser()


def data_flag(data: Path) -> Path | None:
    """Return the `--data` that other commands need to find this directory from here."""
    return None if data == Path(DEFAULT_DATA).absolute() else data


def check_possible(data: Path) -> None:
    """Raises CommandError when nothing could ever be kept there."""
    place = next(one for one in (data.absolute(), *data.absolute().parents) if os.path.lexists(one))
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        why = "cannot be written" if place.is_dir() else "is not a directory"
        raise CommandError(
            f"The data directory {data} cannot be used: {place} {why}. Choose another with --data.", exit_code=USAGE
        )


def asked_for(flag: Path | None) -> bool:
    """Return true if the data directory was named, by option or environment."""
    return flag is not None or bool(os.environ.get("PADDOCK_DATA"))


def find(data: Path) -> Presence | None:
    """The host that last said it serves this directory; whether it still does shows when it is called."""
    try:
        said = cast("dict[str, Any]", json.loads((data / ADDRESS_FILE).read_text(encoding="utf-8")))
        token = (data / TOKEN_FILE).read_text(encoding="ascii").strip()
        return Presence(url=str(said["url"]), pid=int(said["pid"]), token=token)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def new_token() -> str:
    return "pdl_" + secrets.token_urlsafe(32)


@contextmanager
def announced(data: Path, *, url: str, token: str) -> Generator[None]:
    """Say so while the block runs. The token is there before the address that leads to it."""
    _write(data / TOKEN_FILE, token + "\n")
    _write(data / ADDRESS_FILE, json.dumps({"url": url, "pid": os.getpid()}) + "\n")
    try:
        yield
    finally:
        for name in (ADDRESS_FILE, TOKEN_FILE):
            (data / name).unlink(missing_ok=True)


def _write(path: Path, text: str) -> None:
    """Whole or not at all, and never readable by others, not even for a moment."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    fresh.replace(path)
