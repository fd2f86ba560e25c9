"""The command line: which commands there are. What they take is in `commands/`, one module per family; the work is in
one module per command, imported when that command runs, so that asking a question never waits for what answers it.
"""

import os
from typing import Annotated

import typer

from paddock.cli.commands import (
    admin,
    agents,
    approvals,
    automations,
    deliveries,
    harness,
    hosting,
    keys,
    knowledge,
    runner,
    talking,
)
from paddock.cli.commands.options import option

app = typer.Typer(
    name="paddock",
    help="An agent host: agents plug in as runners; conversations, keys and permissions are kept in one place.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for command in (hosting.serve, hosting.run, talking.chat, hosting.doctor, talking.explain):
    app.command()(command)
FAMILIES = {
    "admin": admin.admin,
    "keys": keys.keys,
    "knowledge": knowledge.knowledge,
    "approvals": approvals.approvals,
    "automations": automations.automations,
    "deliveries": deliveries.deliveries,
    "agents": agents.agents,
    "runner": runner.runner,
    "harness": harness.harness,
}
for name, commands in FAMILIES.items():
    app.add_typer(commands, name=name)


def _print_version(wanted: bool) -> None:
    if wanted:
        version()
        raise typer.Exit


@app.callback()
def everything(
    debug: Annotated[bool, option("--debug", says="Show tracebacks of failures.", env="PADDOCK_DEBUG")] = False,
    version: Annotated[  # noqa: ARG001 - its callback has done the work
        bool,
        typer.Option("--version", help="Print the version.", is_eager=True, callback=_print_version),
    ] = False,
) -> None:
    if debug:
        os.environ["PADDOCK_DEBUG"] = "1"


@app.command()
def version() -> None:
    """Print the version."""
    from importlib.metadata import version as version_of

    from paddock.cli.output import write

    write(version_of("paddock") + "\n")
