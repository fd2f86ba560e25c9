"""Runners and plugins: what `paddock runner` takes."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from paddock.cli.commands.options import Data, Url, family, option

runner = family("Runners: write, try, install and remove them.")


@runner.command("new")
def runner_new(
    name: Annotated[str, typer.Argument(help="Name of the plugin and of its directory.")],
    author: Annotated[str | None, option("--author", says="Author; your user name unless set.", metavar="A")] = None,
) -> None:
    """Write a plugin that works, with a test that passes."""
    from paddock.cli.scaffold import new

    sys.exit(new(name, author=author))


@runner.command("dev")
def runner_dev(
    path: Annotated[Path, typer.Argument(help="Directory of the plugin.")],
    url: Url = None,
    data: Data = None,
) -> None:
    """Run a plugin from its directory on a running host; it starts again when you save."""
    from paddock.cli.dev import dev

    sys.exit(dev(path, url=url, data=data))


@runner.command("install")
def runner_install(
    path: Annotated[Path, typer.Argument(help="Directory, .zip or .tar.gz.")],
    yes: Annotated[bool, option("--yes", says="Agree to what it asks for without being asked.")] = False,
    replace: Annotated[bool, option("--replace", says="Put it in the place of an installed one.")] = False,
    data: Data = None,
) -> None:
    """Install a plugin, after showing what it asks for."""
    from paddock.cli.plugins import install

    sys.exit(install(path, data=data, yes=yes, replace=replace))


@runner.command("list")
def runner_list(data: Data = None) -> None:
    """Installed plugins: version, hash, what they may do, and whether they are unchanged."""
    from paddock.cli.plugins import list_installed

    sys.exit(list_installed(data))


@runner.command("verify")
def runner_verify(data: Data = None) -> None:
    """Check installed plugins against what was agreed to."""
    from paddock.cli.plugins import verify

    sys.exit(verify(data))


@runner.command("remove")
def runner_remove(
    plugin: Annotated[str, typer.Argument(help="author/name")],
    data: Data = None,
) -> None:
    """Take an installed plugin out."""
    from paddock.cli.plugins import remove

    sys.exit(remove(plugin, data))
