"""`paddock runner install`, `list`, `verify` and `remove`: what a person is shown and asked."""

from collections.abc import Sequence
from pathlib import Path

from paddock.cli import presence
from paddock.cli.output import FAILED, CommandError, command, fails_with, note, want_yes, write
from paddock.cli.plugin_work import sharing
from paddock.rules.agents.addresses import is_postgres
from paddock.runners.installed.plugins import Level
from paddock.runners.packages import Installed, InstalledPlugins, Package, PackageError, plain_words, read_package
from paddock.runners.processes.isolation import active_level
from paddock.settings import Settings


def install(source: Path, settings: Settings, *, yes: bool, replace: bool) -> None:
    """Show what the package is and asks for, and install it only after a yes."""
    with fails_with(PackageError):
        package = read_package(source)
    plugins = InstalledPlugins(settings.data)
    presence.check_possible(settings.data)
    with fails_with(PackageError):
        plugins.check_free(package.about.id, replace=replace)  # before anybody reads about it
    shared = is_postgres(settings.store)
    if shared and not replace:
        sharing.check_free(settings.store, package)
    _say(_description(package, plugins.get(package.about.id), settings))
    if not yes:
        want_yes(
            "Install it?",
            unasked="Installing needs a yes. Run it in a terminal, or add --yes if you have read the above.",
            refused="Not installed.",
        )
    with fails_with(PackageError, OSError):
        entry = plugins.install(package, replace=replace)
    _say(f"Installed {entry.plugin} {entry.version}.")
    if shared:
        sharing.share(settings.store, package)
        _say("All hosts on the same store take it up within seconds.")
    elif presence.find(settings.data) is not None:
        _say("The running host takes it up within seconds.")


def list_installed(settings: Settings) -> None:
    plugins = InstalledPlugins(settings.data)
    entries = _entries(plugins)
    if not entries:
        install_one = command("runner install PATH", data=presence.data_flag(settings.data))
        _say(f"No plugins are installed. Install one with: {install_one}")
    for entry in entries:
        _say(f"{entry.plugin}  {entry.version}  {'ok' if not plugins.problem(entry) else 'CHANGED'}")
        _say(f"  sha256  {entry.sha256}")
        _say(f"  may     {'; '.join(plain_words(entry.asked, network=entry.network)) or 'nothing beyond answering'}")
        _say(f"  runs    {_level_words(_stronger(entry.isolation, settings.isolation), network=entry.network)}")


def verify(settings: Settings) -> int:
    """Check every installed tree against what was agreed to; 1 when one of them must not be loaded."""
    plugins = InstalledPlugins(settings.data)
    entries = _entries(plugins)
    problems = [problem for entry in entries if (problem := plugins.problem(entry))]
    for problem in problems:
        note(problem)
    _say(f"{len(entries) - len(problems)} of {len(entries)} installed plugins are as they were agreed to.")
    return FAILED if problems else 0


def remove(plugin: str, settings: Settings) -> None:
    shared = is_postgres(settings.store) and sharing.withdraw(settings.store, plugin)
    try:
        entry = InstalledPlugins(settings.data).remove(plugin)
        plugin = f"{entry.plugin} {entry.version}"
    except (PackageError, ValueError, OSError) as error:
        if not shared:  # else a host that serves this directory may have been quicker, or it never had it
            raise CommandError(str(error)) from error
    _say(f"Removed {plugin}. What it kept in its storage stays.")
    if shared:
        _say("All hosts on the same store send it no new runs from now on; those under way may finish.")
    elif presence.find(settings.data) is not None:
        _say("The running host sends it no new runs from now on; those under way may finish.")


def _stronger(one: Level, other: Level) -> Level:
    return "L1" if "L1" in {one, other} else "L0"


def _level_words(level: Level, *, network: bool) -> str:
    """Describe what stands between the plugin and the machine, at the level it will run at."""
    if level == "L0":
        return "at isolation L0: as your user, with your files and this machine's network"
    offered, why = active_level()
    if offered != "L1":
        return f"at isolation L1, which cannot be had here ({why}): a host refuses to start it"
    return f"at isolation L1: apart from your files, {'with' if network else 'without'} this machine's network"


def _memory_words(asked: int, most: int) -> str:
    more = f", and this host gives at most {most} (plugin_memory_mb): it refuses to start it" if asked > most else ""
    return f"  Each of its processes may use {asked} MiB of memory{more}."


def _entries(plugins: InstalledPlugins) -> list[Installed]:
    with fails_with(PackageError):
        return plugins.list()


def _description(package: Package, present: Installed | None, host: Settings) -> str:
    """Describe a package to the person who decides. Its own texts take one line each, without control characters."""
    about = package.about
    level = _stronger(about.isolation, host.isolation)
    wants = plain_words(about.ceiling, network=about.network)
    lines = [f"{about.id} {_one_line(about.version)}: {_one_line(about.description) or 'no description'}"]
    lines += [f"  replaces  {present.version}"] if present else []
    lines += [f"  runs      {_one_line(' '.join(about.command))}", f"  sha256    {package.contents.sha256}"]
    lines += ["  It asks to be allowed to:", *(f"    - {_one_line(line)}" for line in wants)] if wants else []
    lines += ["  It asks for nothing beyond answering."] if not wants else []
    lines += [f"  {_host_only_words(package.host_only)}"]
    lines += [f"  It needs these Python packages: {', '.join(package.requirements)}"] if package.requirements else []
    lines += [f"  Left out: {_one_line(one)}, where a host keeps its data" for one in package.contents.data_directories]
    lines += [f"  It runs {_level_words(level, network=about.network)}."]
    lines += [_memory_words(about.memory_mb, host.plugin_memory_mb)] if level == "L1" else []
    lines += ["  Install only what you trust."] if level == "L0" else []
    return "\n".join(lines)


def _host_only_words(names: Sequence[str] | None) -> str:
    """Say who makes settings that name programs, paths and addresses. Most forms are known only when the plugin
    runs."""
    if names is None:
        return (
            "Settings of its agents that it marks host_only, or that sound like programs, paths or addresses, are made "
            "in the agents file and not over the API."
        )
    if not names:
        return "None of its settings names a program, a path or an address."
    return (
        f"These settings of its agents are made in the agents file and not over the API: {_one_line(', '.join(names))}"
    )


def _one_line(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)[:300]


def _say(text: str) -> None:
    write(text + "\n")
