"""Make API keys. A key is shown once and never stored; the store keeps its SHA-256 only.

A running host is asked over HTTP, because it owns its data directory; without one the store is opened here.
"""

import asyncio
import secrets
import sys
import time
import uuid
from hashlib import sha256
from pathlib import Path

from paddock.cli import presence
from paddock.cli.client import HostClient
from paddock.cli.failures import USAGE, CommandError
from paddock.cli.output import write
from paddock.ports import ApiKeyRow
from paddock.storage.lock import DataDirectory, DataDirectoryInUseError
from paddock.storage.sqlite import SqliteStore

PREFIX = "pdk_"
MAX_NAME = 128


def new_key() -> str:
    """256 bits of chance behind a prefix that secret scanners can look for."""
    return PREFIX + secrets.token_urlsafe(32)


def create(*, workspace: str, user: str, role: str, data: Path | None) -> int:
    """Print a new key on standard output, and what it is on standard error."""
    _check(workspace, user, role)
    directory = presence.data_directory(data).absolute()
    presence.check_possible(directory)
    try:
        key = _create_directly(directory, workspace, user, role)
    except DataDirectoryInUseError as error:
        host = presence.find(directory)
        if host is None:
            raise CommandError(f"{error}, but it has not said how to reach it. Try again in a moment.") from error
        key = _create_through(HostClient(host.url, host.token), workspace, user, role)
    sys.stderr.write(
        f"A key for user {user} in workspace {workspace} with role {role}. It is shown only now; keep it safe.\n"
    )
    write(key + "\n")
    return 0


def _check(workspace: str, user: str, role: str) -> None:
    if role not in {"user", "admin"}:
        raise CommandError(f"role = {role} (from --role) is not allowed: it must be user or admin.", exit_code=USAGE)
    for name, value in (("workspace", workspace), ("user", user)):
        if not 0 < len(value) <= MAX_NAME or not value.isprintable() or value != value.strip():
            raise CommandError(
                f"{name} = {value[:40]!r} (from --{name}) is not allowed: it must be 1 to {MAX_NAME} characters.",
                exit_code=USAGE,
            )


def _create_through(host: HostClient, workspace: str, user: str, role: str) -> str:
    body = {"workspace": workspace, "user": user, "role": role}
    return str(host.call("POST", "/api/v1/api-keys", body)["key"])


def _create_directly(data: Path, workspace: str, user: str, role: str) -> str:
    key = new_key()
    row = ApiKeyRow(
        key_id=uuid.uuid4().hex,
        key_hash=sha256(key.encode()).digest(),
        workspace_id=workspace,
        user_id=user,
        role="admin" if role == "admin" else "user",
        created_at=time.time(),
    )
    with DataDirectory.lock(data):
        asyncio.run(_add(data, row))
    return key


async def _add(data: Path, row: ApiKeyRow) -> None:
    store = SqliteStore(data)
    await store.open()
    try:
        await store.add_key(row)
    finally:
        await store.close()
