"""Make API keys and change secrets. A key is shown once and never stored; the store keeps its SHA-256 only.

A running host is asked over HTTP, because it owns its data directory; without one the store is opened here.
"""

import asyncio
import os
import time
from pathlib import Path
from typing import get_args

from paddock.cli import presence
from paddock.cli.client import HostClient, RefusedError, at
from paddock.cli.output import USAGE, CommandError, command, fails_with, note, write
from paddock.host.people.principals import DEV, new_key
from paddock.ports import ApiKeyRow, Store
from paddock.ports.definitions import PersonRole
from paddock.settings import Settings
from paddock.storage.chosen import store_at
from paddock.storage.files import cluster_secret
from paddock.storage.files.lock import DataDirectory, DataDirectoryInUseError
from paddock.storage.files.signing_keys import rotate

MAX_NAME = 128


def create(settings: Settings, *, workspace: str, user: str, role: str, if_none: bool) -> None:
    """Print a new key on standard output, and what it is on standard error. `if_none`: only if there is no key yet."""
    _check(workspace, user, role)
    presence.check_possible(settings.data)
    try:
        key, first = _create_directly(settings, workspace, user, role, if_none=if_none)
    except DataDirectoryInUseError as error:
        host = presence.find(settings.data)
        if host is None:
            raise CommandError(f"{error}, but it has not said how to reach it. Try again in a moment.") from error
        first = _lets_in_without_a_key(HostClient(host.url))
        key = None
        if first or not if_none:
            body = {"workspace": workspace, "user": user, "role": role}
            key = str(HostClient(host.url, host.token).call("POST", at("api-keys"), body)["key"])
    if key is None:
        note("There is a key already; none was made.")
        return
    note(f"A key for user {user} in workspace {workspace} with role {role}. It is shown only now; keep it safe.")
    if first and not settings.takes_tokens:
        note(_what_changes(workspace, user, presence.data_flag(settings.data)))
    write(f"{key}\n")


def _what_changes(workspace: str, user: str, data: Path | None) -> str:
    changes = "This is the first key: from now on everybody needs one."
    if (workspace, user) == (DEV.workspace_id, DEV.user_id):
        return changes
    if workspace == DEV.workspace_id:
        ask = command(f"keys take-over --user {user}", data=data)
        how = f"to hand it to {user}, while the host runs: {ask}"
    else:
        how = f"for a key to it: {command(f'keys create --user {DEV.user_id}', data=data)}"
    belongs = f"belongs to user {DEV.user_id} of workspace {DEV.workspace_id}"
    return f"{changes}\nWhat was said without a key {belongs}; {how}"


def rotate_signing(settings: Settings) -> None:
    """Make a new key. Running hosts notice within seconds; nothing has to be restarted."""
    made = _rotated(settings)
    write(f"Addresses are signed with the key {made} from now on; the one before counts for another hour.\n")


def rotate_secret(settings: Settings) -> None:
    """Make a new secret in the data directory; what the environment says is changed where it is set."""
    if os.environ.get(cluster_secret.VARIABLE):
        raise CommandError(
            f"The secret is set in {cluster_secret.VARIABLE}. To change it, set it to `old,new` at every host, and "
            "when all have been started again to `new,old`: the first is used, the others are for reading."
        )
    made = cluster_secret.rotate(settings.data)
    write(f"The cluster's secret is {made.mark} from the next start on; those before it are kept for reading.\n")


def adopt_secret(settings: Settings) -> None:
    """Take the secret that is set here for that of the database, when the one before is lost."""
    with fails_with(DataDirectoryInUseError, says="{}. Stop it first.".format):
        known, mark = asyncio.run(_adopted(settings))
    write(f"The cluster's secret is {mark}" + (f", and was {known}.\n" if known not in (None, mark) else ".\n"))
    if known not in (None, mark):
        write("Settings of agents that were made over the API and sealed with that one have to be written again.\n")


async def _adopted(settings: Settings) -> tuple[str | None, str]:
    with DataDirectory.lock(settings.data):
        secret, store = cluster_secret.find(settings.data), store_at(settings.store, settings.data)
        await store.open()
        try:
            known = await store.secret_mark()
            await store.set_secret_mark(secret.mark)
        finally:
            await store.close()
    return known, secret.mark


def _check(workspace: str, user: str, role: str) -> None:
    if role not in get_args(PersonRole):
        raise CommandError(f"role = {role} (from --role) is not allowed: it must be user or admin.", exit_code=USAGE)
    for name, value in (("workspace", workspace), ("user", user)):
        if not 0 < len(value) <= MAX_NAME or not value.isprintable() or value != value.strip():
            raise CommandError(
                f"{name} = {value[:40]!r} (from --{name}) is not allowed: it must be 1 to {MAX_NAME} characters.",
                exit_code=USAGE,
            )


def _lets_in_without_a_key(host: HostClient) -> bool:
    try:
        host.call("GET", at("users", "me"))
    except RefusedError:
        return False
    return True


def _create_directly(
    settings: Settings, workspace: str, user: str, role: str, *, if_none: bool
) -> tuple[str | None, bool]:
    """Return the key, None if it was not to be made, and whether it is the first."""
    key, row = new_key(workspace, user, "admin" if role == "admin" else "user", by_operator=True)
    with DataDirectory.lock(settings.data):
        first = asyncio.run(_added_first(store_at(settings.store, settings.data), row, if_none=if_none))
    return key if first or not if_none else None, first


async def _added_first(store: Store, row: ApiKeyRow, *, if_none: bool) -> bool:
    """Add the key, with `if_none` only if there is none yet. Return true if there was none."""
    await store.open()
    try:
        first = not await store.any_key()
        if first or not if_none:
            await store.add_key(row)
        return first
    finally:
        await store.close()


def _rotated(settings: Settings) -> str:
    if not settings.shares_signing_keys:
        return rotate(settings.signing_file, time.time())
    from paddock.storage.postgres.commands import rotate as rotate_for_all

    return asyncio.run(rotate_for_all(settings.store, time.time()))
