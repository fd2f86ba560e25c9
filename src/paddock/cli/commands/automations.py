"""Jobs that run by themselves: what `paddock automations` takes."""

import sys
from pathlib import Path

from paddock.cli.commands.options import argument, family, option, with_data, with_url

automations = family("Jobs that run by themselves, by cron or RRULE.")
with_job = argument("job", says="The id that `paddock automations list` shows.")
with_json = option("--json", "as_json", says="Print them as JSON.", flag=True)


@automations.command("list")
@with_url
@with_data
@with_json
def automations_list(url: str | None, data: Path | None, as_json: bool) -> None:
    """Show your jobs and when they fire next."""
    from paddock.cli.operating.automations import show

    sys.exit(show(url=url, data=data, as_json=as_json))


@automations.command("create")
@argument("name", says="What the job is called.")
@argument("prompt", says="What the agent is asked each time.")
@with_url
@with_data
@option("--cron", says="A cron line, such as '0 9 * * 1-5'.", metavar="LINE")
@option("--rrule", says="An RRULE, such as FREQ=DAILY;BYHOUR=9.", metavar="RULE")
@option("--zone", says="Its time zone; yours unless set.", metavar="ZONE")
@option("--agent", says="Who is asked; the default agent unless set.")
@option("--missed", says="What was missed: skip or run_once.", default="skip")
@option("--tool", says="Only these tools of the agent; repeat it.", many=True)
def automations_create(
    *,
    name: str,
    prompt: str,
    url: str | None,
    data: Path | None,
    cron: str | None,
    rrule: str | None,
    zone: str | None,
    agent: str | None,
    missed: str,
    tool: list[str] | None,
) -> None:
    """Make a job."""
    from paddock.cli.operating.automations import create

    config = {"enabledTools": tool} if tool else None
    when = {"cron": cron, "rrule": rrule, "timeZone": zone, "missed": missed}
    given = {"name": name, "prompt": prompt, **when, "agentId": agent, "config": config}
    sys.exit(create(given, url=url, data=data))


@automations.command("enable")
@with_job
@with_url
@with_data
def automations_enable(job: str, url: str | None, data: Path | None) -> None:
    """Let a job fire again."""
    from paddock.cli.operating.automations import switch

    sys.exit(switch(job, on=True, url=url, data=data))


@automations.command("disable")
@with_job
@with_url
@with_data
def automations_disable(job: str, url: str | None, data: Path | None) -> None:
    """Keep a job from firing."""
    from paddock.cli.operating.automations import switch

    sys.exit(switch(job, on=False, url=url, data=data))


@automations.command("delete")
@with_job
@with_url
@with_data
def automations_delete(job: str, url: str | None, data: Path | None) -> None:
    """Take a job away. Its conversation stays."""
    from paddock.cli.operating.automations import delete

    sys.exit(delete(job, url=url, data=data))


@automations.command("run")
@with_job
@with_url
@with_data
def automations_run(job: str, url: str | None, data: Path | None) -> None:
    """Run a job now, whatever its schedule says."""
    from paddock.cli.operating.automations import run

    sys.exit(run(job, url=url, data=data))


@automations.command("firings")
@with_job
@with_url
@with_data
@with_json
def automations_firings(job: str, url: str | None, data: Path | None, as_json: bool) -> None:
    """Show what became of a job's ticks, the latest first."""
    from paddock.cli.operating.automations import firings

    sys.exit(firings(job, url=url, data=data, as_json=as_json))
