"""The command line: which commands there are. What they take is in `commands/`, one module per family; the work is in
one module per command, imported when that command runs, so that asking a question never waits for what answers it.
"""

import os

import click

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
from paddock.cli.commands.options import Family, option


def _print_version(_context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        version()
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


def version() -> None:
    """Print the version."""
    from importlib.metadata import version as version_of

    from paddock.cli.output import write

    write(version_of("paddock") + "\n")


for command in (hosting.serve, hosting.run, talking.chat, hosting.doctor, talking.explain, version):
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
    app.add_command(commands, name)
