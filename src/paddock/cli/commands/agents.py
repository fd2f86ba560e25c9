"""Agents and their file: what `paddock agents` takes."""

import sys
from pathlib import Path

from paddock.cli.commands.options import argument, family, with_config, with_data, with_url

agents = family("Agents: see them, check their file.")


@agents.command("list")
@with_url
@with_data
def agents_list(url: str | None, data: Path | None) -> None:
    """Agents of a running host, where each comes from, and whether it can answer."""
    from paddock.cli.operating.agents import list_agents

    sys.exit(list_agents(url=url, data=data))


@agents.command("check")
@argument("file", says="The agents file; the one in the settings unless named.", kind=Path, required=False)
@with_data
@with_config
def agents_check(file: Path | None, data: Path | None, config: Path | None) -> None:
    """Read an agents file as the host would, and say what is wrong with it."""
    from paddock import settings
    from paddock.cli.operating.agents import check

    sys.exit(check(settings.load({"data": data}, config=config), file))


@agents.command("schema")
def agents_schema() -> None:
    """Print the JSON schema of the agents file, for editors."""
    from paddock.cli.operating.agents import schema

    sys.exit(schema())
