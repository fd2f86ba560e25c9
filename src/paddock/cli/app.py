"""The command line: every command that has no family, and the families.

A command's options and its request to a running host are stated in one place. Larger work is in a module of its own,
imported when the command runs, so that no command waits for what another one needs.
"""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from paddock.cli.client import RUNS, HostClient, at
from paddock.cli.commands import admin, agents, harness, keys, knowledge, requests, runner
from paddock.cli.commands.options import (
    Family,
    argument,
    option,
    with_config,
    with_data,
    with_host,
    with_json,
    with_settings,
    with_url,
)
from paddock.cli.output import print_json, write

if TYPE_CHECKING:
    from paddock.settings import Settings


def _version() -> str:
    from importlib.metadata import version

    return version("paddock") + "\n"


def _print_version(_context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        write(_version())
        raise click.exceptions.Exit


@click.group(cls=Family, name="paddock", no_args_is_help=True)
@option("--debug", says="Show tracebacks of failures.", env="PADDOCK_DEBUG", flag=True)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, help="Print the version.", callback=_print_version
)
def app(debug: bool) -> None:
    """An agent host: agents plug in as runners; conversations, keys and permissions are kept in one place."""
    if debug:
        os.environ["PADDOCK_DEBUG"] = "1"


for name, commands in {
    "admin": admin.admin,
    "agents": agents.agents,
    "approvals": requests.approvals,
    "automations": requests.automations,
    "deliveries": requests.deliveries,
    "harness": harness.harness,
    "keys": keys.keys,
    "knowledge": knowledge.knowledge,
    "runner": runner.runner,
}.items():
    app.add_command(commands, name)


with_port = option(
    "--port", says="Port to listen on; 8484 unless set, 0 = any free one.", env="PADDOCK_PORT", metavar="N"
)
with_agents_file = option("--agents", says="YAML file that names the agents.", env="PADDOCK_AGENTS", metavar="FILE")


@app.command()
@with_data
@option("--host", says="Address to listen on; 127.0.0.1 unless set.", env="PADDOCK_HOST", metavar="H")
@with_port
@with_agents_file
@option(
    "--plugins",
    says="Directory holding plugin directories; may be repeated.",
    env="PADDOCK_PLUGINS",
    metavar="DIR",
    many=True,
)
@option(
    "--store",
    says="embedded, or postgresql://... (a password is better kept in the environment or a file).",
    env="PADDOCK_STORE",
    metavar="ADDRESS",
)
@with_config
@option("--log-level", says="debug, info, warning or error.", env="PADDOCK_LOG_LEVEL", metavar="LEVEL")
@option("--log-format", says="text or json.", env="PADDOCK_LOG_FORMAT", metavar="FORM")
@option(
    "--isolation",
    says="How runners are kept apart: L0 (same user) or L1 (bubblewrap).",
    env="PADDOCK_ISOLATION",
    metavar="LEVEL",
)
@option(
    "--run-deadline-seconds",
    says="How long a run may take; 300 unless set.",
    env="PADDOCK_RUN_DEADLINE_SECONDS",
    metavar="S",
)
@option(
    "--env-allow",
    says="Variable that runners may see; may be repeated.",
    env="PADDOCK_ENV_ALLOW",
    metavar="NAME",
    many=True,
)
def serve(**flags: Any) -> None:
    """Start the host. Ctrl-C stops it.

    What is set here wins over the environment, the environment over the TOML file, the file over the defaults.
    """
    from paddock.cli.hosting.starting import start

    start(flags)


@app.command()
@argument("file", says="A Python file with an Agent in it.", kind=Path)
@argument("message", says="What to say; without it, a conversation.", required=False)
@with_data
@option("--port", says="Port to listen on; 8484 or any free one unless set.", env="PADDOCK_PORT", metavar="N")
@with_config
@option("--new", says="Start another conversation.", flag=True)
def run(file: Path, message: str | None, data: Path | None, port: str | None, config: Path | None, new: bool) -> int:
    """Start a host for the agent in a Python file and talk to it. Everything said is kept.

    The conversation goes on where it was left. Without a terminal and without a message it only serves.
    """
    from paddock import settings
    from paddock.cli.hosting.run import refuse_no_program
    from paddock.cli.hosting.run import run as run_file

    refuse_no_program(file)
    loaded = settings.load({"data": data, "agents": file, "port": port}, config=config)
    return run_file(file, loaded, message, new=new)


@app.command()
@argument("message", says="What to say; without it, a conversation.", required=False)
@option("--agent", says="Which agent to talk to.", metavar="A")
@with_url
@with_data
@option("--thread", says="Continue this conversation, by its id.", metavar="ID")
@option("--json", "as_json", says="Print the events (AG-UI), one JSON object per line.", flag=True)
def chat(message: str | None, **where: Any) -> int:
    """Talk to an agent of a running host.

    A key for a host on another machine is read from PADDOCK_API_KEY.
    """
    from paddock.cli.chatting.chat import chat as talk

    return talk(message, **where)


@app.command()
@with_settings(with_data, with_port, with_agents_file)
def doctor(settings: "Settings") -> int:
    """Say what works on this machine, what does not, and what to do about it."""
    from paddock.cli.chatting.answers import colours_wanted
    from paddock.cli.hosting.doctor import doctor as examine

    return examine(settings, colours=colours_wanted(sys.stdout, os.environ))


@app.command()
@argument("run", says="The run: its taskId, or your runId.")
@argument("action", says="The host call, such as history.page.")
@argument("resource", says="What it is about: a tool, a model, a state scope.", required=False, default="")
@with_host
@with_json
def explain(run: str, action: str, resource: str, host: HostClient, as_json: bool) -> None:
    """Say why a run may, or may not, make a host call."""
    answer = host.call("GET", at(*RUNS, run, "explain", action=action, resource=resource), for_programs=as_json)
    if as_json:
        print_json(answer)
        return
    granted = "granted" if answer["granted"] else "not granted"
    lines = [f"{action} {resource}".strip() + f": {granted}, {'allowed' if answer['allowed'] else 'refused'} now"]
    lines += [f"  {sentence}" for sentence in answer["because"]]
    if answer["decisions"]:
        counts = ", ".join(f"{count} {result}" for result, count in sorted(answer["decisions"].items()))
        lines.append(f"  So far: {counts}.")
    write("\n".join(lines) + "\n")


@app.command()
def version() -> None:
    """Print the version."""
    write(_version())
