"""Starting our host for the bench: the command a person would type, a fresh data directory, one runner from the SDK.

Everything the bench knows of the host's command line is in this file; how runs are asked for is in `doors.py`.
"""

import shutil
import sys
from pathlib import Path

from bench.servers import BenchError, Launch, free_port

AGENTS = """\
default_agent: bench
agents:
  bench:
    runner: "plugin:paddock/bench/default"
"""
READY_PATH = "/readyz"
PROGRAM = Path(sys.executable).parent / "paddock"


def paddock_launch(work: Path, program: Path = PROGRAM, /, **more: str) -> Launch:
    """The host with the bench runner as its only agent. `more`: other options of its command line."""
    if not program.exists():
        raise BenchError(
            f"there is no {program}; run `make install` first, or measure the floor alone (--systems floor)"
        )
    agents = work / "agents.yaml"
    agents.write_text(AGENTS)
    port = free_port()
    options = {"--data": work / "data", "--port": port, "--agents": agents, "--plugins": _plugins(work), **more}
    command = [str(program), "serve", *(str(word) for option in options.items() for word in option)]
    return Launch("paddock", command, port, READY_PATH)


def _plugins(work: Path) -> Path:
    """A directory of plugin directories holding a copy of ours, so that a run leaves nothing in the source tree."""
    plugins = work / "plugins"
    shutil.copytree(Path(__file__).parent / "runner", plugins / "bench", ignore=shutil.ignore_patterns("__pycache__"))
    return plugins
