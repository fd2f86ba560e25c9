"""What is known here of an agent that a host does not have: its plugin may be on its way, or under work."""

from contextlib import suppress
from pathlib import Path

from paddock.cli.client import HostClient
from paddock.cli.hosting import presence
from paddock.cli.program import command


def about(agent: str, host: HostClient, data: Path | None) -> str:
    directory = presence.data_directory(data).absolute()
    here = presence.find(directory)
    plugin = _installed(agent, directory) if here is not None and here.url == host.url else ""
    if plugin:
        return (
            f"The plugin {plugin} is installed: a host takes it up within seconds, and one with an agents file has it "
            "under the names given there."
        )
    return f"If you are writing it, `{command('runner dev')}` says whether it is attached."


def _installed(name: str, directory: Path) -> str:
    """The installed plugin of this name, if there is one."""
    from paddock.runners.packages import InstalledPlugins, PackageError

    with suppress(PackageError, ValueError, OSError):
        for one in InstalledPlugins(directory).list():
            if one.plugin.partition("/")[2] == name:
                return one.plugin
    return ""
