"""`paddock automations`: jobs that run by themselves, and the outcomes of their ticks."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from paddock.cli.client import connect
from paddock.cli.commands.options import argument, family, option, with_data, with_url
from paddock.cli.output import write

BASE = "/api/v1/automations"


def show(*, url: str | None, data: Path | None, as_json: bool) -> int:
    found = connect(url, data).call("GET", BASE)["automations"]
    if as_json:
        write(json.dumps(found, ensure_ascii=False) + "\n")
    else:
        write("".join(f"{_line(one)}\n" for one in found) or "There are no automations.\n")
    return 0


def create(given: Mapping[str, Any], *, url: str | None, data: Path | None) -> int:
    made = connect(url, data).call("POST", BASE, {key: value for key, value in given.items() if value is not None})
    write(f"{_line(made)}\n")
    return 0


def switch(job: str, *, on: bool, url: str | None, data: Path | None) -> int:
    changed = connect(url, data).call("PATCH", _one(job), {"enabled": on})
    write(f"{_line(changed)}\n")
    return 0


def delete(job: str, *, url: str | None, data: Path | None) -> int:
    connect(url, data).call("DELETE", _one(job))
    write(f"{job} fires no more; its conversation is still there.\n")
    return 0


def run(job: str, *, url: str | None, data: Path | None) -> int:
    accepted = connect(url, data).call("POST", f"{_one(job)}/run")
    write(f"run {accepted['taskId']} on thread {accepted['threadId']}\n")
    return 0


def firings(job: str, *, url: str | None, data: Path | None, as_json: bool) -> int:
    found = connect(url, data).call("GET", f"{_one(job)}/firings")["firings"]
    if as_json:
        write(json.dumps(found, ensure_ascii=False) + "\n")
    else:
        write("".join(f"{_told(one)}\n" for one in found) or "It has not fired yet.\n")
    return 0


def _one(job: str) -> str:
    return f"{BASE}/{quote(job, safe='')}"


def _line(job: Mapping[str, Any]) -> str:
    when = job.get("cron") or job.get("rrule")
    state = f"next {job['nextAt']}" if job["nextAt"] else ("no tick left" if job["enabled"] else "off")
    return f"{job['jobId']}  {state}  {when} {job['timeZone']}  {json.dumps(job['name'], ensure_ascii=False)}"


def _told(firing: Mapping[str, Any]) -> str:
    what = firing.get("taskId") or firing.get("reason") or ""
    return f"{firing['scheduledAt']}  {firing['result']:8}  {what}"


automations = family("Jobs that run by themselves, by cron or RRULE.")
with_job = argument("job", says="The id that `paddock automations list` shows.")
with_json = option("--json", "as_json", says="Print them as JSON.", flag=True)


@automations.command("list")
@with_url
@with_data
@with_json
def automations_list(url: str | None, data: Path | None, as_json: bool) -> None:
    """Show your jobs and when they fire next."""
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
    sys.exit(switch(job, on=True, url=url, data=data))


@automations.command("disable")
@with_job
@with_url
@with_data
def automations_disable(job: str, url: str | None, data: Path | None) -> None:
    """Keep a job from firing."""
    sys.exit(switch(job, on=False, url=url, data=data))


@automations.command("delete")
@with_job
@with_url
@with_data
def automations_delete(job: str, url: str | None, data: Path | None) -> None:
    """Take a job away. Its conversation stays."""
    sys.exit(delete(job, url=url, data=data))


@automations.command("run")
@with_job
@with_url
@with_data
def automations_run(job: str, url: str | None, data: Path | None) -> None:
    """Run a job now, whatever its schedule says."""
    sys.exit(run(job, url=url, data=data))


@automations.command("firings")
@with_job
@with_url
@with_data
@with_json
def automations_firings(job: str, url: str | None, data: Path | None, as_json: bool) -> None:
    """Show what became of a job's ticks, the latest first."""
    sys.exit(firings(job, url=url, data=data, as_json=as_json))
