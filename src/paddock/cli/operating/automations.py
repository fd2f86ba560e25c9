"""`paddock automations`: jobs that run by themselves, and what became of their ticks."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from paddock.cli.client import connect
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
