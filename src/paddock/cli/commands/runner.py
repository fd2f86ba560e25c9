"""Runners and plugins: what `paddock runner` takes."""

import sys
from pathlib import Path

from paddock.cli.commands.options import argument, family, option, with_data, with_url

runner = family("Runners: write, try, install and remove them.")


@runner.command("new")
@argument("name", says="Name of the plugin and of its directory.")
@option("--author", says="Author; your user name unless set.", metavar="A")
def runner_new(name: str, author: str | None) -> None:
    """Write a plugin that works, with a test that passes."""
    from paddock.cli.plugin_work.scaffold import new

    sys.exit(new(name, author=author))


@runner.command("dev")
@argument("path", says="Directory of the plugin.", kind=Path)
@with_url
@with_data
def runner_dev(path: Path, url: str | None, data: Path | None) -> None:
    """Run a plugin from its directory on a running host; it starts again when you save."""
    from paddock.cli.plugin_work.dev import dev

    sys.exit(dev(path, url=url, data=data))


@runner.command("install")
@argument("path", says="Directory, .zip or .tar.gz.", kind=Path)
@option("--yes", says="Agree to what it asks for without being asked.", flag=True)
@option("--replace", says="Put it in the place of an installed one.", flag=True)
@with_data
def runner_install(path: Path, yes: bool, replace: bool, data: Path | None) -> None:
    """Install a plugin, after showing what it asks for."""
    from paddock.cli.plugin_work.plugins import install

    sys.exit(install(path, data=data, yes=yes, replace=replace))


@runner.command("list")
@with_data
def runner_list(data: Path | None) -> None:
    """Installed plugins: version, hash, what they may do, and whether they are unchanged."""
    from paddock.cli.plugin_work.plugins import list_installed

    sys.exit(list_installed(data))


@runner.command("verify")
@with_data
def runner_verify(data: Path | None) -> None:
    """Check installed plugins against what was agreed to."""
    from paddock.cli.plugin_work.plugins import verify

    sys.exit(verify(data))


@runner.command("remove")
@argument("plugin", says="author/name")
@with_data
def runner_remove(plugin: str, data: Path | None) -> None:
    """Take an installed plugin out."""
    from paddock.cli.plugin_work.plugins import remove

    sys.exit(remove(plugin, data))


@runner.command("refresh")
@argument("plugin", says="author/name")
@with_url
@with_data
def runner_refresh(plugin: str, url: str | None, data: Path | None) -> None:
    """Have a running host read once more what a plugin offers. Runs under way finish as they began."""
    from paddock.cli.plugin_work.plugins import refresh

    sys.exit(refresh(plugin, url=url, data=data))
