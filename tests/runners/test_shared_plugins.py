"""What all hosts have is put in place here, exactly as it was agreed to, and goes when it is gone there."""

from pathlib import Path

import pytest

from cli.package_makers import PLUGIN, a_directory
from paddock.rules.rows.rows import AuditRow, PluginRow
from paddock.runners.packages import InstalledPlugins, Package, PackageError, read_package, unpack
from paddock.runners.packages.archives import packed
from paddock.runners.plugin_updates import SharedPlugins
from stores import QuickStore

pytestmark = pytest.mark.anyio


def a_package(place: Path, version: str = "1.0") -> Package:
    files = {"paddock-plugin.toml": PLUGIN.replace("1.0", version).encode(), "runner.py": b"print()\n" * 5000}
    return read_package(a_directory(place / version, files))


def a_row(package: Package, **other: str) -> PluginRow:
    sha256 = other.get("sha256", package.contents.sha256)
    return PluginRow(other.get("plugin", "me/demo"), "1", sha256, packed(package.contents), 1.0, "ann")


class Here:
    """One host's plugins, following a store."""

    def __init__(self, store: QuickStore, data: Path) -> None:
        self.store, self.plugins = store, InstalledPlugins(data)
        self.rows: list[AuditRow] = []
        self.shared = SharedPlugins(self.plugins, self.store, note=self.rows.append, clock=lambda: 0.0)

    async def after(self, *rows: PluginRow) -> list[tuple[str, str, bool]]:
        await self.store.write(list(rows))
        await self.shared.follow()
        return [(one.plugin, one.version, one.shared) for one in self.plugins.list()]


def test_the_same_files_are_the_same_archive_and_come_out_as_they_went_in(tmp_path: Path) -> None:
    package = a_package(tmp_path)
    raw = packed(package.contents)
    assert raw == packed(a_package(tmp_path / "again").contents)
    assert unpack(raw, package.contents.sha256).contents == package.contents
    with pytest.raises(PackageError, match="the hash is another one"):
        unpack(raw, "0" * 64)
    with pytest.raises(PackageError, match="damaged"):
        unpack(raw[: len(raw) // 2], package.contents.sha256)


async def test_what_all_have_is_put_in_place_replaced_and_taken_out(store: QuickStore, tmp_path: Path) -> None:
    here = Here(store, tmp_path / "data")
    first, second = a_package(tmp_path), a_package(tmp_path, "2.0")
    assert await here.after(a_row(first)) == [("me/demo", "1.0", True)]
    assert await here.after(a_row(second)) == [("me/demo", "2.0", True)]
    assert here.plugins.problem(here.plugins.list()[0]) == ""
    assert await here.after(PluginRow("me/demo", "", "", b"", 1.0, "ann")) == []
    assert [row.result for row in here.rows] == ["allowed"] * 3


async def test_what_a_host_has_for_itself_stays_until_all_have_it(store: QuickStore, tmp_path: Path) -> None:
    here, package = Here(store, tmp_path / "data"), a_package(tmp_path)
    here.plugins.install(package)
    assert await here.after() == [("me/demo", "1.0", False)]
    assert await here.after(a_row(package)) == [("me/demo", "1.0", True)]
    assert await here.after(PluginRow("me/demo", "", "", b"", 1.0, "ann")) == []


async def test_files_that_were_not_agreed_to_are_refused_said_once_and_hide_no_other(
    store: QuickStore, tmp_path: Path
) -> None:
    here, package = Here(store, tmp_path / "data"), a_package(tmp_path)
    wrong = [a_row(package, plugin="a/forged", sha256="0" * 64), a_row(package, plugin="b/renamed")]
    assert await here.after(*wrong, a_row(package)) == [("me/demo", "1.0", True)]
    assert await here.after() == [("me/demo", "1.0", True)]
    assert [(row.resource, row.result) for row in here.rows] == [
        ("a/forged", "invalid"),
        ("b/renamed", "invalid"),
        ("me/demo", "allowed"),
    ]
