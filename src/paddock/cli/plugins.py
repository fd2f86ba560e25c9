"""`paddock runner install`, `list`, `verify`, `remove`: what a person is told and asked. The work is elsewhere."""

import sys
from pathlib import Path

from paddock.cli import presence
from paddock.cli.failures import FAILED, USAGE, CommandError
from paddock.runners.packages import Installed, InstalledPlugins, Package, PackageError, plain_words, read_package


def install(source: Path, *, data: Path | None, yes: bool, replace: bool) -> int:
    """Show what the package is and asks for, and install it only after a yes."""
    package = _read(source)
    plugins = _installed(data)
    _say(_description(package, plugins.get(package.about.id)))
    if not yes:
        _ask()
    try:
        entry = plugins.install(package, replace=replace)
    except (PackageError, OSError) as error:
        raise CommandError(str(error)) from error
    _say(f"Installed {entry.plugin} {entry.version}.")
    if presence.find(presence.data_directory(data)) is not None:
        _say("A running host sees it after a restart.")
    return 0


def list_installed(data: Path | None) -> int:
    plugins = _installed(data)
    entries = _entries(plugins)
    if not entries:
        _say("No plugins are installed. Install one with: paddock runner install PATH")
    for entry in entries:
        _say(f"{entry.plugin}  {entry.version}  {'ok' if not plugins.problem(entry) else 'CHANGED'}")
        _say(f"  sha256  {entry.sha256}")
        _say(f"  may     {'; '.join(plain_words(entry.asked)) or 'nothing beyond answering'}")
    return 0


def verify(data: Path | None) -> int:
    """Check every installed tree against what was agreed to; 1 when one of them must not be loaded."""
    plugins = _installed(data)
    entries = _entries(plugins)
    problems = [problem for entry in entries if (problem := plugins.problem(entry))]
    for problem in problems:
        sys.stderr.write(problem + "\n")
    _say(f"{len(entries) - len(problems)} of {len(entries)} installed plugins are as they were agreed to.")
    return FAILED if problems else 0


def remove(plugin: str, data: Path | None) -> int:
    try:
        entry = _installed(data).remove(plugin)
    except (PackageError, ValueError, OSError) as error:
        raise CommandError(str(error)) from error
    _say(f"Removed {entry.plugin} {entry.version}. What it kept in its storage stays.")
    return 0


def _read(source: Path) -> Package:
    try:
        return read_package(source)
    except PackageError as error:
        raise CommandError(str(error)) from error


def _installed(data: Path | None) -> InstalledPlugins:
    return InstalledPlugins(presence.data_directory(data).absolute())


def _entries(plugins: InstalledPlugins) -> list[Installed]:
    try:
        return plugins.list()
    except PackageError as error:
        raise CommandError(str(error)) from error


def _description(package: Package, present: Installed | None) -> str:
    """What a person decides by. The package's own words are shown on one line each and cannot paint over ours."""
    about = package.about
    wants = plain_words(about.ceiling)
    lines = [f"{about.id} {_one_line(about.version)}: {_one_line(about.description) or 'no description'}"]
    lines += [f"  replaces  {present.version}"] if present else []
    lines += [f"  runs      {_one_line(' '.join(about.command))}", f"  sha256    {package.contents.sha256}"]
    lines += ["  It asks to be allowed to:", *(f"    - {_one_line(line)}" for line in wants)] if wants else []
    lines += ["  It asks for nothing beyond answering."] if not wants else []
    lines += [f"  It needs these Python packages: {', '.join(package.requirements)}"] if package.requirements else []
    lines += ["  At isolation L0 it runs as your user: install only what you trust."]
    return "\n".join(lines)


def _one_line(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)[:300]


def _ask() -> None:
    if not sys.stdin.isatty():
        raise CommandError(
            "Installing needs a yes. Run it in a terminal, or add --yes if you have read the above.", exit_code=USAGE
        )
    sys.stdout.write("Install it? [y/N] ")
    sys.stdout.flush()
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise CommandError("Not installed.")


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
