"""Starting a host, and finding out why not: what `serve`, `run` and `doctor` take."""

import os
import sys
from pathlib import Path
from typing import Any

from paddock.cli.commands.options import argument, option, with_config, with_data

with_host = option("--host", says="Address to listen on; 127.0.0.1 unless set.", env="PADDOCK_HOST", metavar="H")
with_port = option(
    "--port", says="Port to listen on; 8484 unless set, 0 = any free one.", env="PADDOCK_PORT", metavar="N"
)
with_agents_file = option("--agents", says="YAML file that names the agents.", env="PADDOCK_AGENTS", metavar="FILE")
with_plugin_directories = option(
    "--plugins",
    says="Directory holding plugin directories; may be repeated.",
    env="PADDOCK_PLUGINS",
    metavar="DIR",
    many=True,
)
with_store_address = option(
    "--store",
    says="embedded, or postgresql://... (a password is better kept in the environment or a file).",
    env="PADDOCK_STORE",
    metavar="ADDRESS",
)
with_log_level = option("--log-level", says="debug, info, warning or error.", env="PADDOCK_LOG_LEVEL", metavar="LEVEL")
with_log_format = option("--log-format", says="text or json.", env="PADDOCK_LOG_FORMAT", metavar="FORM")
with_isolation_level = option(
    "--isolation",
    says="How runners are kept apart: L0 (same user) or L1 (bubblewrap).",
    env="PADDOCK_ISOLATION",
    metavar="LEVEL",
)
with_run_deadline = option(
    "--run-deadline-seconds",
    says="How long a run may take; 300 unless set.",
    env="PADDOCK_RUN_DEADLINE_SECONDS",
    metavar="S",
)
with_variables_seen = option(
    "--env-allow",
    says="Variable that runners may see; may be repeated.",
    env="PADDOCK_ENV_ALLOW",
    metavar="NAME",
    many=True,
)


@with_data
@with_host
@with_port
@with_agents_file
@with_plugin_directories
@with_store_address
@with_config
@with_log_level
@with_log_format
@with_isolation_level
@with_run_deadline
@with_variables_seen
def serve(**flags: Any) -> None:
    """Start the host. Ctrl-C stops it.

    What is set here wins over the environment, the environment over the TOML file, the file over the defaults.
    """
    from paddock.cli.hosting.starting import start

    start(flags)


@argument("file", says="A Python file with an Agent in it.", kind=Path)
@argument("message", says="What to say; without it, a conversation.", required=False)
@with_data
@option("--port", says="Port to listen on; 8484 or any free one unless set.", env="PADDOCK_PORT", metavar="N")
@with_config
@option("--new", says="Start another conversation.", flag=True)
def run(file: Path, message: str | None, data: Path | None, port: str | None, config: Path | None, new: bool) -> None:
    """Start a host for the agent in a Python file and talk to it. Everything said is kept.

    The conversation goes on where it was left. Without a terminal and without a message it only serves.
    """
    from paddock import settings
    from paddock.cli.hosting.run import refuse_no_program
    from paddock.cli.hosting.run import run as run_file

    refuse_no_program(file)
    loaded = settings.load({"data": data, "agents": file, "port": port}, config=config)
    sys.exit(run_file(file, loaded, message, new=new))


@with_data
@with_port
@with_agents_file
@with_config
def doctor(data: Path | None, port: str | None, agents: str | None, config: Path | None) -> None:
    """Say what works on this machine, what does not, and what to do about it."""
    from paddock import settings
    from paddock.cli.chatting.answers import colours_wanted
    from paddock.cli.checks.doctor import doctor as examine

    loaded = settings.load({"data": data, "port": port, "agents": agents}, config=config)
    sys.exit(examine(loaded, colours=colours_wanted(sys.stdout, os.environ)))
