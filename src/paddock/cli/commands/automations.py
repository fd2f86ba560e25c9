"""Jobs that run by themselves: what `paddock automations` takes."""

import sys
from typing import Annotated

import typer

from paddock.cli.commands.options import Data, Url, family, option

automations = family("Jobs that run by themselves, by cron or RRULE.")
Job = Annotated[str, typer.Argument(help="The id that `paddock automations list` shows.")]
Json = Annotated[bool, option("--json", says="Print them as JSON.")]


@automations.command("list")
def automations_list(url: Url = None, data: Data = None, as_json: Json = False) -> None:
    """Show your jobs and when they fire next."""
    from paddock.cli.automations import show

    sys.exit(show(url=url, data=data, as_json=as_json))


@automations.command("create")
def automations_create(  # noqa: PLR0917 - one option each
    name: Annotated[str, typer.Argument(help="What the job is called.")],
    prompt: Annotated[str, typer.Argument(help="What the agent is asked each time.")],
    url: Url = None,
    data: Data = None,
    cron: Annotated[str | None, option("--cron", says="A cron line, such as '0 9 * * 1-5'.", metavar="LINE")] = None,
    rrule: Annotated[
        str | None, option("--rrule", says="An RRULE, such as FREQ=DAILY;BYHOUR=9.", metavar="RULE")
    ] = None,
    zone: Annotated[str | None, option("--zone", says="Its time zone; yours unless set.", metavar="ZONE")] = None,
    agent: Annotated[str | None, option("--agent", says="Who is asked; the default agent unless set.")] = None,
    missed: Annotated[str, option("--missed", says="What was missed: skip or run_once.")] = "skip",
    tool: Annotated[list[str] | None, option("--tool", says="Only these tools of the agent; repeat it.")] = None,
) -> None:
    """Make a job."""
    from paddock.cli.automations import create

    config = {"enabledTools": tool} if tool else None
    when = {"cron": cron, "rrule": rrule, "timeZone": zone, "missed": missed}
    given = {"name": name, "prompt": prompt, **when, "agentId": agent, "config": config}
    sys.exit(create(given, url=url, data=data))


@automations.command("enable")
def automations_enable(job: Job, url: Url = None, data: Data = None) -> None:
    """Let a job fire again."""
    from paddock.cli.automations import switch

    sys.exit(switch(job, on=True, url=url, data=data))


@automations.command("disable")
def automations_disable(job: Job, url: Url = None, data: Data = None) -> None:
    """Keep a job from firing."""
    from paddock.cli.automations import switch

    sys.exit(switch(job, on=False, url=url, data=data))


@automations.command("delete")
def automations_delete(job: Job, url: Url = None, data: Data = None) -> None:
    """Take a job away. Its conversation stays."""
    from paddock.cli.automations import delete

    sys.exit(delete(job, url=url, data=data))


@automations.command("run")
def automations_run(job: Job, url: Url = None, data: Data = None) -> None:
    """Run a job now, whatever its schedule says."""
    from paddock.cli.automations import run

    sys.exit(run(job, url=url, data=data))


@automations.command("firings")
def automations_firings(job: Job, url: Url = None, data: Data = None, as_json: Json = False) -> None:
    """Show what became of a job's ticks, the latest first."""
    from paddock.cli.automations import firings

    sys.exit(firings(job, url=url, data=data, as_json=as_json))
