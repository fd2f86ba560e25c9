"""`paddock deliveries`: what goes out to platforms, and once more what was given up."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from paddock.cli.client import connect
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
