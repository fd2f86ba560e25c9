"""`paddock deliveries`: list what goes out to platforms, and send again what was given up."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from paddock.cli.client import connect
from paddock.cli.commands.options import argument, family, option, with_data, with_url
from paddock.cli.output import write

BASE = "/api/v1/deliveries"


def show(status: str | None, *, url: str | None, data: Path | None, as_json: bool) -> int:
    asked = f"?{urlencode({'status': status})}" if status else ""
    found = connect(url, data).call("GET", f"{BASE}{asked}")["deliveries"]
    if as_json:
        write(json.dumps(found, ensure_ascii=False) + "\n")
    else:
        write("".join(f"{_line(one)}\n" for one in found) or "There are no such deliveries.\n")
    return 0


def again(delivery: str, *, url: str | None, data: Path | None) -> int:
    tried = connect(url, data).call("POST", f"{BASE}/{quote(delivery, safe='')}/redeliver")
    write(f"{_line(tried)}\n")
    return 0


def _line(one: Mapping[str, Any]) -> str:
    detail = json.dumps(one["detail"], ensure_ascii=False) if one.get("detail") else ""
    return (
        f"{one['deliveryId']}  {one['status']:9}  {one['platform']}  {one['type']}  {one['attempts']} tries  {detail}"
    )


deliveries = family("What is delivered to chat platforms, and what was given up.")


@deliveries.command("list")
@with_url
@with_data
@option("--status", says="pending, delivered or dead; all unless set.", metavar="S")
@option("--json", "as_json", says="Print them as JSON.", flag=True)
def deliveries_list(url: str | None, data: Path | None, status: str | None, as_json: bool) -> None:
    """Show deliveries, the newest first."""
    sys.exit(show(status, url=url, data=data, as_json=as_json))


@deliveries.command("redeliver")
@argument("delivery", says="The id that `paddock deliveries list --status dead` shows.")
@with_url
@with_data
def deliveries_redeliver(delivery: str, url: str | None, data: Path | None) -> None:
    """Try something again that was given up."""
    sys.exit(again(delivery, url=url, data=data))
