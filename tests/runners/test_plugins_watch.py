"""Looking after the list of installed plugins: what cannot be loaded is said once, and hides nothing else."""

import json
from pathlib import Path

import pytest

from cli.package_makers import PLUGIN, a_directory
from paddock.rules.rows.rows import AuditRow
from paddock.runners.gateway import Gateway
from paddock.runners.installed.catalog import Catalog
from paddock.runners.packages import InstalledPlugins, read_package
from paddock.runners.packages.installed import RECORD_FILE
from paddock.runners.plugin_updates import PluginsWatch
from runners.house import house

pytestmark = pytest.mark.anyio


def install(data: Path, name: str, version: str = "1.0") -> None:
    text = PLUGIN.replace('"demo"', f'"{name}"').replace('"1.0"', f'"{version}"')
    source = a_directory(data / "sources" / f"{name}-{version}", {"paddock-plugin.toml": text.encode()})
    InstalledPlugins(data).install(read_package(source), replace=True)


class Watched:
    """A watch over an empty data directory, and what it wrote down."""

    def __init__(self, gateway: Gateway, data: Path) -> None:
        self.rows: list[AuditRow] = []
        self.record = data / "plugins" / RECORD_FILE
        self.watch = PluginsWatch(
            gateway,
            load=lambda: Catalog.load(installed=data / "plugins", built_in=data / "none"),
            mark=lambda: self.record.read_bytes() if self.record.exists() else None,
            seen=None,
            note=self.rows.append,
            clock=lambda: 0.0,
        )

    async def look(self) -> list[tuple[str, str]]:
        """What a look wrote down: of which plugin, with which result."""
        self.rows.clear()
        changed = await self.watch.reload_if_changed()
        assert changed == any(row.result == "allowed" for row in self.rows)
        return [(row.resource, row.result) for row in self.rows]


async def test_plugins_are_taken_up_when_the_list_changes_and_only_then(tmp_path: Path) -> None:
    async with house(tmp_path) as there:
        watched = Watched(there.gateway, tmp_path)
        assert await watched.look() == []
        install(tmp_path, "one")
        assert await watched.look() == [("me/one", "allowed"), ("test/nasty", "allowed")]  # the test's own went
        assert dict(there.gateway.names("w", installed=True)) == {"one": "plugin:me/one/default"}
        assert await watched.look() == []
        install(tmp_path, "one", "1.1")
        assert await watched.look() == [("me/one", "allowed")]
        assert watched.rows[0].reason == "replaced 1.0 by 1.1"
        install(tmp_path, "one", "1.1")
        assert await watched.look() == [("me/one", "allowed")]  # the same again is put in anew, to mend it


async def test_a_runner_that_cannot_answer_without_settings_is_not_offered_by_its_own_name(tmp_path: Path) -> None:
    catalog = Catalog.load(installed=tmp_path)
    async with house(tmp_path, list(catalog.plugins.values())) as there:
        names = set(there.gateway.names("w", installed=True))
        assert {"echo", "local-agent", "router-worker"} <= names
        assert {"acp", "claude-code", "codex", "http"}.isdisjoint(names)
        assert (
            await there.gateway.manifest("plugin:paddock/http/default", "w")
        ).name == "default"  # an agent may use it


async def test_a_changed_plugin_is_left_out_said_once_and_hides_no_other(tmp_path: Path) -> None:
    async with house(tmp_path) as there:
        watched = Watched(there.gateway, tmp_path)
        install(tmp_path, "bad")
        await watched.look()
        (tmp_path / "plugins" / "me" / "bad" / "more.py").write_text("not agreed to")
        install(tmp_path, "good")
        assert await watched.look() == [("me/good", "allowed"), ("me/bad", "allowed"), ("me/bad", "invalid")]
        assert "was changed after it was installed" in watched.rows[-1].reason
        assert list(there.gateway.names("w", installed=True)) == ["good"]
        install(tmp_path, "further")
        assert await watched.look() == [("me/further", "allowed")]


async def test_a_list_that_cannot_be_read_changes_nothing(tmp_path: Path) -> None:
    async with house(tmp_path) as there:
        watched = Watched(there.gateway, tmp_path)
        install(tmp_path, "one")
        await watched.look()
        whole = watched.record.read_text()
        watched.record.write_text("{ no list")
        assert await watched.look() == [("installed.json", "invalid")]
        assert list(there.gateway.names("w", installed=True)) == ["one"]
        watched.record.write_text(json.dumps(json.loads(whole)))
        assert await watched.look() == []
