"""Families whose commands are one request to a running host each: approvals, automations, deliveries."""

import json
from collections.abc import Mapping
from typing import Any

from paddock.cli.client import HostClient, at
from paddock.cli.commands.options import argument, family, option, with_host, with_json
from paddock.cli.output import FAILED, print_list, write

MAX_SHOWN = 200

approvals = family("Actions that wait for your approval.")
with_approval = argument("approval", says="The id that `paddock approvals list` shows.")


@approvals.command("list")
@with_host
@option("--status", says="pending, granted, denied or expired; all unless set.", metavar="S")
@with_json
def approvals_list(host: HostClient, status: str | None, as_json: bool) -> None:
    """Show what your agents asked for, newest first."""
    found = host.call("GET", at("approvals", status=status), for_programs=as_json)["approvals"]
    print_list(found, _approval, nothing="Nothing waits for approval.", as_json=as_json)


@approvals.command("grant")
@with_approval
@with_host
def approvals_grant(approval: str, host: HostClient) -> int:
    """Approve an action. It is done once, now."""
    return _decide(host, approval, "grant")


@approvals.command("deny")
@with_approval
@with_host
def approvals_deny(approval: str, host: HostClient) -> int:
    """Refuse an action. It is never done."""
    return _decide(host, approval, "deny")


def _decide(host: HostClient, approval: str, decision: str) -> int:
    """Exit 0 when the decision stands, 1 when what was granted could not be done."""
    decided = host.call("POST", at("approvals", approval), {"decision": decision})
    detail = f": {decided['detail']}" if decided.get("detail") else ""
    write(f"{decided['action']} {decided['status']}, {decided['outcome']}{detail}\n")
    return 0 if decided["outcome"] in {"done", "denied"} else FAILED


def _approval(one: Mapping[str, Any]) -> str:
    """Show an agent's texts as JSON, so that they cannot look like anything else."""
    what = json.dumps({"target": one["target"], "payload": one["payload"]})
    return f"{one['approvalId']}  {one['outcome']:8}  {one['agentId']}  {one['action']}  {what[:MAX_SHOWN]}"


automations = family("Jobs that run by themselves, by cron or RRULE.")
with_job = argument("job", says="The id that `paddock automations list` shows.")


@automations.command("list")
@with_host
@with_json
def automations_list(host: HostClient, as_json: bool) -> None:
    """Show your jobs and when they fire next."""
    found = host.call("GET", at("automations"), for_programs=as_json)["automations"]
    print_list(found, _job, nothing="There are no automations.", as_json=as_json)


@automations.command("create")
@argument("name", says="The name of the job.")
@argument("prompt", says="What to ask the agent each time.")
@with_host
@option("--cron", says="A cron line, such as '0 9 * * 1-5'.", metavar="LINE")
@option("--rrule", says="An RRULE, such as FREQ=DAILY;BYHOUR=9.", metavar="RULE")
@option("--zone", says="Its time zone; yours unless set.", metavar="ZONE")
@option("--agent", says="The agent to ask; the default agent unless set.")
@option("--missed", says="What to do about missed ticks: skip or run_once.", default="skip")
@option("--tool", says="Allow only this tool of the agent; may be repeated.", many=True)
def automations_create(
    host: HostClient, zone: str | None, agent: str | None, tool: list[str] | None, **given: str | None
) -> None:
    """Make a job."""
    asked = {**given, "timeZone": zone, "agentId": agent, "config": {"enabledTools": tool} if tool else None}
    body = {key: value for key, value in asked.items() if value is not None}
    write(f"{_job(host.call('POST', at('automations'), body))}\n")


@automations.command("enable")
@with_job
@with_host
def automations_enable(job: str, host: HostClient) -> None:
    """Switch a job on again."""
    write(f"{_job(host.call('PATCH', at('automations', job), {'enabled': True}))}\n")


@automations.command("disable")
@with_job
@with_host
def automations_disable(job: str, host: HostClient) -> None:
    """Switch a job off."""
    write(f"{_job(host.call('PATCH', at('automations', job), {'enabled': False}))}\n")


@automations.command("delete")
@with_job
@with_host
def automations_delete(job: str, host: HostClient) -> None:
    """Delete a job. Its conversation stays."""
    host.call("DELETE", at("automations", job))
    write(f"{job} fires no more; its conversation is still there.\n")


@automations.command("run")
@with_job
@with_host
def automations_run(job: str, host: HostClient) -> None:
    """Run a job now, whatever its schedule says."""
    accepted = host.call("POST", at("automations", job, "run"))
    write(f"run {accepted['taskId']} on thread {accepted['threadId']}\n")


@automations.command("firings")
@with_job
@with_host
@with_json
def automations_firings(job: str, host: HostClient, as_json: bool) -> None:
    """Show the outcome of each tick of a job, the latest first."""
    found = host.call("GET", at("automations", job, "firings"), for_programs=as_json)["firings"]
    print_list(found, _firing, nothing="It has not fired yet.", as_json=as_json)


def _job(job: Mapping[str, Any]) -> str:
    when = job.get("cron") or job.get("rrule")
    state = f"next {job['nextAt']}" if job["nextAt"] else ("no tick left" if job["enabled"] else "off")
    return f"{job['jobId']}  {state}  {when} {job['timeZone']}  {json.dumps(job['name'], ensure_ascii=False)}"


def _firing(firing: Mapping[str, Any]) -> str:
    return f"{firing['scheduledAt']}  {firing['result']:8}  {firing.get('taskId') or firing.get('reason') or ''}"


deliveries = family("Deliveries to chat platforms, and those that were given up.")


@deliveries.command("list")
@with_host
@option("--status", says="pending, delivered or dead; all unless set.", metavar="S")
@with_json
def deliveries_list(host: HostClient, status: str | None, as_json: bool) -> None:
    """Show deliveries, the newest first."""
    found = host.call("GET", at("deliveries", status=status), for_programs=as_json)["deliveries"]
    print_list(found, _delivery, nothing="There are no such deliveries.", as_json=as_json)


@deliveries.command("redeliver")
@argument("delivery", says="The id that `paddock deliveries list --status dead` shows.")
@with_host
def deliveries_redeliver(delivery: str, host: HostClient) -> None:
    """Try a delivery again that was given up."""
    write(f"{_delivery(host.call('POST', at('deliveries', delivery, 'redeliver')))}\n")


def _delivery(one: Mapping[str, Any]) -> str:
    detail = json.dumps(one["detail"], ensure_ascii=False) if one.get("detail") else ""
    return (
        f"{one['deliveryId']}  {one['status']:9}  {one['platform']}  {one['type']}  {one['attempts']} tries  {detail}"
    )
