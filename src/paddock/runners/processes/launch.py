"""From a plugin record to the exact command line and environment of its process. Starts nothing."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from paddock.runners.installed.plugins import OPEN, Level, Place, Plugin
from paddock.runners.processes.isolation import Ground, confine, level_for
from paddock.runners.processes.leftovers import MARK_VARIABLE
from paddock.runners.processes.process import Launch

HOST_PYTHON = "host-python"
"""Our own interpreter, for an adapter that comes with the host and starts the plugin's environment by itself."""


def environment(plugin: Plugin, *, home: Path, mark: str, allowed: Mapping[str, str]) -> dict[str, str]:
    """All a runner process gets to see; nothing else of the host's environment, no secret by accident."""
    fixed = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONUNBUFFERED": "1",
        "PADDOCK_PLUGIN": plugin.id,
        MARK_VARIABLE: mark,
    }
    if plugin.python_path:
        fixed["PYTHONPATH"] = os.pathsep.join(map(str, plugin.python_path))
    return dict(allowed) | dict(plugin.env) | fixed


def plan(
    plugin: Plugin,
    *,
    ground: Ground,
    mark: str,
    allowed: Mapping[str, str],
    isolation: Level,
    place: Place = OPEN,
    socket: Path | None = None,
) -> Launch:
    """How to start one process of this plugin. Raises StartError when the isolation asked for cannot be had.

    `socket` leads to the runs' own endpoints; a plugin that never asks for one does not see it.
    """
    level = level_for(plugin, max(isolation, place.level))
    shared = level == "L1" and plugin.runs_per_process != 1 and not plugin.ceiling.working_directory
    home = ground.homes.home(plugin.author, plugin.name, shared=shared)
    program, *arguments = plugin.command
    if program == "python":  # the one of its own environment, if it has one, else ours
        program = str(plugin.python or sys.executable)
    elif program == HOST_PYTHON:
        program = sys.executable
    argv = (program, *arguments)
    env = environment(plugin, home=home, mark=mark, allowed=allowed)
    way_out = socket if plugin.ceiling.mcp else None
    confined = confine(plugin, argv, ground, place, way_out) if level == "L1" else argv
    return Launch(plugin=plugin.id, argv=confined, cwd=plugin.directory, env=env)
