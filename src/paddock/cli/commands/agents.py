"""`paddock agents`: list the agents of a host, check an agents file, print its schema."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paddock.cli.client import HostClient, at
from paddock.cli.commands.options import argument, family, with_data, with_host, with_settings
from paddock.cli.output import FAILED, USAGE, CommandError, as_sentence, counted, fails_with, write

if TYPE_CHECKING:
    from paddock.settings import Settings

agents = family("Agents: list them, check their file.")


@agents.command("list")
@with_host
def agents_list(host: HostClient) -> int:
    """Agents of a running host, where each comes from, and whether it can answer."""
    answer = host.call("GET", at("agents"))
    found: list[Mapping[str, Any]] = answer["agents"]
    width = max((len(agent["agentId"]) for agent in found), default=0)
    for agent in found:
        star = "*" if agent["default"] else " "
        state = f"{agent['health']:<7}  {agent.get('isolation', '-'):<9}  {agent['origin']:<8}"
        write(f"{star} {agent['agentId']:<{width}}  {state}  {agent['runnerId']}\n")
        if "problem" in agent:
            write(f"  {'':<{width}}  -> {agent['problem']}\n")
    if "problem" in answer:
        write(f"The agents file cannot be used, so the agents stay as they were: {answer['problem']}.\n")
    return FAILED if "problem" in answer or any(agent["health"] == "problem" for agent in found) else 0


@agents.command("check")
@argument("file", says="The agents file; the one in the settings unless named.", kind=Path, required=False)
@with_settings(with_data)
def agents_check(file: Path | None, settings: "Settings") -> int:
    """Read an agents file as the host would, and say what is wrong with it."""
    from paddock.cli.hosting.doctor_host import defined_by, without_runner
    from paddock.host.agents.file import AgentsFileError

    path = file or settings.agents
    if path is None:
        raise CommandError("Name the file to check: paddock agents check agents.yaml.", exit_code=USAGE)
    with fails_with(AgentsFileError, says=as_sentence):
        defined = defined_by(path)
    missing = without_runner(settings, path)
    for agent_id, plugin in missing.items():
        write(f"{agent_id}: the plugin {plugin} is not installed; paddock runner install puts it in.\n")
    write(f"{path}: {counted(len(defined.bindings), 'agent')}, default {defined.default_agent_id}.\n")
    if configured := ", ".join(one.agent_id for one in defined.bindings if one.config):
        write(
            f"The config of {configured} was not checked: only their runners can do that. "
            "See what they say with: paddock agents list.\n"
        )
    return FAILED if missing else 0


@agents.command("schema")
def agents_schema() -> None:
    """Print the JSON schema of the agents file, for editors."""
    from paddock.host.agents.file import agents_schema

    write(agents_schema())
