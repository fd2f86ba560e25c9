"""`paddock agents`: list the agents of a host, check an agents file, print its schema."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paddock.cli.client import connect
from paddock.cli.commands.options import argument, family, with_config, with_data, with_url
from paddock.cli.output import FAILED, USAGE, CommandError, as_sentence, write

if TYPE_CHECKING:
    from paddock.host.agents.file import Defined
    from paddock.settings import Settings


LIST = "paddock agents list"


def list_agents(*, url: str | None, data: Path | None) -> int:
    """One line for each agent of a running host; 1 when one of them cannot answer."""
    answer = connect(url, data).call("GET", "/api/v1/agents")
    agents: list[Mapping[str, Any]] = answer["agents"]
    width = max((len(agent["agentId"]) for agent in agents), default=0)
    for agent in agents:
        star = "*" if agent["default"] else " "
        state = f"{agent['health']:<7}  {_level(agent):<9}  {agent['origin']:<8}"
        write(f"{star} {agent['agentId']:<{width}}  {state}  {agent['runnerId']}\n")
        if "problem" in agent:
            write(f"  {'':<{width}}  -> {agent['problem']}\n")
    if "problem" in answer:
        write(f"The agents file cannot be used, so the agents stay as they were: {answer['problem']}.\n")
    return FAILED if "problem" in answer or any(agent["health"] == "problem" for agent in agents) else 0


def _level(agent: Mapping[str, Any]) -> str:
    return str(agent.get("isolation", "-"))


def check(settings: "Settings", file: Path | None) -> int:
    """Read an agents file as the host would; 1 when it cannot be used, or names runners nobody has installed."""
    from paddock.host.agents.file import AgentsFileError

    path = file or settings.agents
    if path is None:
        raise CommandError("Name the file to check: paddock agents check agents.yaml.", exit_code=USAGE)
    try:
        defined = defined_by(path)
    except AgentsFileError as error:
        raise CommandError(as_sentence(error)) from error
    missing = without_runner(settings, path)
    for agent_id, plugin in missing.items():
        write(f"{agent_id}: the plugin {plugin} is not installed; paddock runner install puts it in.\n")
    count = len(defined.bindings)
    write(f"{path}: {count} agent{'' if count == 1 else 's'}, default {defined.default_agent_id}.\n")
    if settled := ", ".join(one.agent_id for one in defined.bindings if one.config):
        write(f"Not looked at is the config of {settled}: only their runners know it. A host asks them: {LIST}.\n")
    return FAILED if missing else 0


def without_runner(settings: "Settings", path: Path) -> dict[str, str]:
    """Agents of a file whose plugin is not there, with the plugin's name. Starts nothing. Raises AgentsFileError."""
    from paddock.runners.installed.catalog import Catalog
    from paddock_sdk.protocol.ids import RunnerId

    catalog = Catalog.load(installed=settings.data / "plugins", further=settings.plugins)
    plugins = {one.agent_id: str(RunnerId.parse(one.runner_id).plugin) for one in defined_by(path).bindings}
    return {agent_id: plugin for agent_id, plugin in plugins.items() if plugin not in catalog.plugins}


def defined_by(path: Path) -> "Defined":
    """Read a file of agents, a Python program or YAML, as the host does. Raises AgentsFileError."""
    from paddock.agent_program import is_program, load_program
    from paddock.host.agents.file import read_file

    return load_program(path).defined if is_program(path) else read_file(path)


def schema() -> int:
    from paddock.host.agents.schema import agents_schema

    write(agents_schema())
    return 0


agents = family("Agents: see them, check their file.")


@agents.command("list")
@with_url
@with_data
def agents_list(url: str | None, data: Path | None) -> None:
    """Agents of a running host, where each comes from, and whether it can answer."""
    sys.exit(list_agents(url=url, data=data))


@agents.command("check")
@argument("file", says="The agents file; the one in the settings unless named.", kind=Path, required=False)
@with_data
@with_config
def agents_check(file: Path | None, data: Path | None, config: Path | None) -> None:
    """Read an agents file as the host would, and say what is wrong with it."""
    from paddock import settings

    sys.exit(check(settings.load({"data": data}, config=config), file))


@agents.command("schema")
def agents_schema() -> None:
    """Print the JSON schema of the agents file, for editors."""
    sys.exit(schema())
