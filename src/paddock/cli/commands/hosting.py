"""Starting a host, and finding out why not: what `serve`, `run` and `doctor` take."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from paddock.cli.commands.options import Config, Data, option

Host = Annotated[
    str | None, option("--host", says="Address to listen on; 127.0.0.1 unless set.", env="PADDOCK_HOST", metavar="H")
]
Port = Annotated[
    str | None,
    option("--port", says="Port to listen on; 8484 unless set, 0 = any free one.", env="PADDOCK_PORT", metavar="N"),
]
AgentsFile = Annotated[
    str | None, option("--agents", says="YAML file that names the agents.", env="PADDOCK_AGENTS", metavar="FILE")
]
PluginDirectories = Annotated[
    list[str] | None,
    option(
        "--plugins", says="Directory holding plugin directories; may be repeated.", env="PADDOCK_PLUGINS", metavar="DIR"
    ),
]
StoreAddress = Annotated[
    str | None,
    option(
        "--store",
        says="embedded, or postgresql://... (a password is better kept in the environment or a file).",
        env="PADDOCK_STORE",
        metavar="ADDRESS",
    ),
]
LogLevel = Annotated[
    str | None, option("--log-level", says="debug, info, warning or error.", env="PADDOCK_LOG_LEVEL", metavar="LEVEL")
]
LogFormat = Annotated[
    str | None, option("--log-format", says="text or json.", env="PADDOCK_LOG_FORMAT", metavar="FORM")
]
IsolationLevel = Annotated[
    str | None,
    option(
        "--isolation",
        says="How runners are kept apart: L0 (same user) or L1 (bubblewrap).",
        env="PADDOCK_ISOLATION",
        metavar="LEVEL",
    ),
]
RunDeadline = Annotated[
    str | None,
    option(
        "--run-deadline-seconds",
        says="How long a run may take; 300 unless set.",
        env="PADDOCK_RUN_DEADLINE_SECONDS",
        metavar="S",
    ),
]
VariablesSeen = Annotated[
    list[str] | None,
    option(
        "--env-allow", says="Variable that runners may see; may be repeated.", env="PADDOCK_ENV_ALLOW", metavar="NAME"
    ),
]


def serve(  # noqa: PLR0917 - one parameter for each option is how typer is told of them
    data: Data = None,
    host: Host = None,
    port: Port = None,
    agents: AgentsFile = None,
    plugins: PluginDirectories = None,
    store: StoreAddress = None,
    config: Config = None,
    log_level: LogLevel = None,
    log_format: LogFormat = None,
    isolation: IsolationLevel = None,
    run_deadline_seconds: RunDeadline = None,
    env_allow: VariablesSeen = None,
) -> None:
    """Start the host. Ctrl-C stops it.

    What is set here wins over the environment, the environment over the TOML file, the file over the defaults.
    """
    from paddock.cli.starting import start

    start(
        {
            "data": data,
            "host": host,
            "port": port,
            "agents": agents,
            "plugins": plugins,
            "store": store,
            "config": config,
            "log_level": log_level,
            "log_format": log_format,
            "isolation": isolation,
            "run_deadline_seconds": run_deadline_seconds,
            "env_allow": env_allow,
        }
    )


def run(
    file: Annotated[Path, typer.Argument(help="A Python file with an Agent in it.")],
    message: Annotated[str | None, typer.Argument(help="What to say; without it, a conversation.")] = None,
    data: Data = None,
    port: Annotated[
        str | None,
        option("--port", says="Port to listen on; 8484 or any free one unless set.", env="PADDOCK_PORT", metavar="N"),
    ] = None,
    config: Config = None,
    new: Annotated[bool, option("--new", says="Start another conversation.")] = False,
) -> None:
    """Start a host for the agent in a Python file and talk to it. Everything said is kept.

    The conversation goes on where it was left. Without a terminal and without a message it only serves.
    """
    from paddock import settings
    from paddock.cli.run import refuse_no_program
    from paddock.cli.run import run as run_file

    refuse_no_program(file)
    loaded = settings.load({"data": data, "agents": file, "port": port}, config=config)
    sys.exit(run_file(file, loaded, message, new=new))


def doctor(
    data: Data = None,
    port: Port = None,
    agents: AgentsFile = None,
    config: Config = None,
) -> None:
    """Say what works on this machine, what does not, and what to do about it."""
    from paddock import settings
    from paddock.cli.answers import colours_wanted
    from paddock.cli.doctor import doctor as examine

    loaded = settings.load({"data": data, "port": port, "agents": agents}, config=config)
    sys.exit(examine(loaded, colours=colours_wanted(sys.stdout, os.environ)))
