"""Runners and plugins: what `paddock runner` takes."""

from pathlib import Path
from typing import TYPE_CHECKING

from paddock.cli.client import HostClient, at
from paddock.cli.commands.options import (
    argument,
    family,
    option,
    with_data,
    with_host,
    with_settings,
    with_url,
    with_yes,
)
from paddock.cli.output import FAILED, USAGE, CommandError, note, write

if TYPE_CHECKING:
    from paddock.settings import Settings

runner = family("Runners: write, try, install and remove them.")


@runner.command("new")
@argument("name", says="Name of the plugin and of its directory.")
@option("--author", says="Author; your user name unless set.", metavar="A")
def runner_new(name: str, author: str | None) -> None:
    """Write a plugin that works, with a test that passes."""
    from paddock.cli.plugin_work.scaffold import new

    new(name, author=author)


@runner.command("dev")
@argument("path", says="Directory of the plugin.", kind=Path)
@with_url
@with_data
def runner_dev(path: Path, url: str | None, data: Path | None) -> None:
    """Run a plugin from its directory on a running host; it starts again when you save."""
    from paddock.cli.plugin_work.dev import dev

    dev(path, url=url, data=data)


@runner.command("install")
@argument("path", says="Directory, .zip or .tar.gz.", kind=Path)
@with_yes
@option("--replace", says="Put it in the place of an installed one.", flag=True)
@with_settings(with_data)
def runner_install(path: Path, yes: bool, replace: bool, settings: "Settings") -> None:
    """Install a plugin, after showing what it asks for."""
    from paddock.cli.plugin_work.plugins import install

    install(path, settings, yes=yes, replace=replace)


@runner.command("list")
@with_settings(with_data)
def runner_list(settings: "Settings") -> None:
    """Installed plugins: version, hash, what they may do, and whether they are unchanged."""
    from paddock.cli.plugin_work.plugins import list_installed

    list_installed(settings)


@runner.command("verify")
@with_settings(with_data)
def runner_verify(settings: "Settings") -> int:
    """Check installed plugins against what was agreed to."""
    from paddock.cli.plugin_work.plugins import verify

    return verify(settings)


@runner.command("remove")
@argument("plugin", says="author/name")
@with_settings(with_data)
def runner_remove(plugin: str, settings: "Settings") -> None:
    """Take an installed plugin out."""
    from paddock.cli.plugin_work.plugins import remove

    remove(plugin, settings)


@runner.command("refresh")
@argument("plugin", says="author/name")
@with_host
def runner_refresh(plugin: str, host: HostClient) -> int:
    """Have a running host ask a plugin again what it offers. Runs under way finish as they began."""
    author, _, name = plugin.partition("/")
    if not author or not name or "/" in name:
        raise CommandError(
            f"{plugin!r} names no plugin: say author/name, as `paddock runner list` does.", exit_code=USAGE
        )
    listed = host.call("POST", at("runners", author, name, "refresh"))["runners"]
    offered = [runner["runnerId"] for runner in listed if "manifest" in runner]
    for runner_id in offered:
        write(f"{runner_id}\n")
    if not offered:
        note(listed[0].get("detail") or f"{plugin} did not say what it offers; the host's log tells why.")
    return 0 if offered else FAILED
