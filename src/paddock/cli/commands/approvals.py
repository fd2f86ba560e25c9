"""`paddock approvals`: list, grant and deny actions that agents asked for."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from paddock.cli.client import connect
from paddock.cli.commands.options import argument, family, option, with_data, with_url
from paddock.cli.output import write

MAX_SHOWN = 200


def show(status: str | None, *, url: str | None, data: Path | None, as_json: bool) -> int:
    asked = f"?{urlencode({'status': status})}" if status else ""
    found = connect(url, data).call("GET", f"/api/v1/approvals{asked}")["approvals"]
    if as_json:
        write(json.dumps(found, ensure_ascii=False) + "\n")
    else:
        write("".join(f"{_line(one)}\n" for one in found) or "Nothing waits for approval.\n")
    return 0


def decide(approval: str, decision: str, *, url: str | None, data: Path | None) -> int:
    """Exit 0 when the decision stands, 1 when what was granted could not be done."""
    path = f"/api/v1/approvals/{quote(approval, safe='')}"
    decided = connect(url, data).call("POST", path, {"decision": decision})
    detail = f": {decided['detail']}" if decided.get("detail") else ""
    write(f"{decided['action']} {decided['status']}, {decided['outcome']}{detail}\n")
    return 0 if decided["outcome"] in {"done", "denied"} else 1


def _line(one: Mapping[str, Any]) -> str:
    """One line: whatever an agent wrote is shown as JSON, so that it cannot pretend to be more than that."""
    what = json.dumps({"target": one["target"], "payload": one["payload"]})
    return f"{one['approvalId']}  {one['outcome']:8}  {one['agentId']}  {one['action']}  {what[:MAX_SHOWN]}"


approvals = family("Actions that wait for your approval.")


@approvals.command("list")
@with_url
@with_data
@option("--status", says="pending, granted, denied or expired; all unless set.", metavar="S")
@option("--json", "as_json", says="Print them as JSON.", flag=True)
def approvals_list(url: str | None, data: Path | None, status: str | None, as_json: bool) -> None:
    """Show what your agents asked for, newest first."""
    sys.exit(show(status, url=url, data=data, as_json=as_json))


with_approval = argument("approval", says="The id that `paddock approvals list` shows.")


@approvals.command("grant")
@with_approval
@with_url
@with_data
def approvals_grant(approval: str, url: str | None, data: Path | None) -> None:
    """Approve an action. It is done once, now."""
    sys.exit(decide(approval, "grant", url=url, data=data))


@approvals.command("deny")
@with_approval
@with_url
@with_data
def approvals_deny(approval: str, url: str | None, data: Path | None) -> None:
    """Refuse an action. It is never done."""
    sys.exit(decide(approval, "deny", url=url, data=data))
