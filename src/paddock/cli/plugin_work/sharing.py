"""Plugins for all hosts: what `paddock runner install` and `remove` write where several hosts share a store."""

import asyncio
import getpass
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from paddock.cli.output import CommandError, fails_with
from paddock.rules.errors import HostError, StorageUnavailableError
from paddock.rules.rows.rows import AuditRow, PluginRow
from paddock.runners.packages import InstalledPlugins, Package
from paddock.runners.packages.archives import packed
from paddock.runners.packages.contents import read_tree

if TYPE_CHECKING:
    from paddock.storage.postgres import PostgresStore

Answer = TypeVar("Answer")


def check_free(address: str, package: Package) -> None:
    """Raises CommandError when all hosts have another plugin of that name."""
    known = _ask(address, lambda store: store.shared_plugins()).get(package.about.id)
    if known is not None and known != package.contents.sha256:
        raise CommandError(
            f"The hosts have another {package.about.id} already. Use --replace to put this one in its place."
        )


def share(address: str, package: Package) -> None:
    about, sha256 = package.about, package.contents.sha256
    _write(address, PluginRow(about.id, about.version, sha256, packed(package.contents), time.time(), _person()))


def brought_along(directory: Path) -> tuple[Sequence[PluginRow], Sequence[str]]:
    """Return the installed plugins of a directory for a shared store, and those changed since they were agreed to."""
    plugins, rows, changed = InstalledPlugins(directory), list[PluginRow](), list[str]()
    for one in plugins.list():
        contents = read_tree(plugins.directory(one.plugin))
        if contents.sha256 == one.sha256:
            rows.append(PluginRow(one.plugin, one.version, one.sha256, packed(contents), one.installed_at, _person()))
        else:
            changed.append(one.plugin)
    return rows, changed


def withdraw(address: str, plugin: str) -> bool:
    """Remove a plugin from all hosts; return false if they did not have it."""
    if plugin not in _ask(address, lambda store: store.shared_plugins()):
        return False
    _write(address, PluginRow(plugin, "", "", b"", time.time(), _person()))
    return True


def _write(address: str, row: PluginRow) -> None:
    action = "plugins.share" if row.body else "plugins.withdraw"
    reason = f"{row.version} {row.sha256}".strip()
    audit = AuditRow(row.installed_at, "", f"cli:{row.installed_by}", action, row.plugin[:128], "", "allowed", reason)
    _ask(address, lambda store: store.write([row, audit]))


def _person() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "somebody"


def _ask(address: str, question: "Callable[[PostgresStore], Awaitable[Answer]]") -> Answer:
    async def asked() -> Answer:
        from paddock.storage.postgres import PostgresStore

        store = PostgresStore(address)
        await store.open()
        try:
            return await question(store)
        finally:
            await store.close()

    says = "The store that the hosts share could not be asked: {}. Other hosts were not told; try again.".format
    with fails_with(StorageUnavailableError, HostError, says=says):
        return asyncio.run(asked())
