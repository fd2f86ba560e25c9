"""Agents and their file: what `paddock agents` takes."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from paddock.cli.commands.options import Config, Data, Url, family

agents = family("Agents: see them, check their file.")


@agents.command("list")
def agents_list(url: Url = None, data: Data = None) -> None:
    """Agents of a running host, where each comes from, and whether it can answer."""
    from paddock.cli.agents import list_agents

    sys.exit(list_agents(url=url, data=data))


@agents.command("check")
def agents_check(
    file: Annotated[Path | None, typer.Argument(help="The agents file; the one in the settings unless named.")] = None,
    data: Data = None,
    config: Config = None,
) -> None:
    """Read an agents file as the host would, and say what is wrong with it."""
    from paddock import settings
    from paddock.cli.agents import check

    sys.exit(check(settings.load({"data": data}, config=config), file))


@agents.command("schema")
def agents_schema() -> None:
    """Print the JSON schema of the agents file, for editors."""
    from paddock.cli.agents import schema

    sys.exit(schema())
