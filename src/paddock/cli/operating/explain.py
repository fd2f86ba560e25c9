"""`paddock explain`: why a run may, or may not, make a host call, as the host tells it."""

import json
from pathlib import Path
from urllib.parse import quote, urlencode

from paddock.cli.client import connect
from paddock.cli.output import write


def explain(run: str, action: str, resource: str, *, url: str | None, data: Path | None, as_json: bool) -> int:
    asked = urlencode({"action": action, "resource": resource})
    told = connect(url, data).call("GET", f"/api/v1/agent/runs/{quote(run, safe='')}/explain?{asked}")
    if as_json:
        write(json.dumps(told, ensure_ascii=False) + "\n")
        return 0
    what = f"{action} {resource}".strip()
    lines = [
        f"{what}: {'granted' if told['granted'] else 'not granted'}, {'allowed' if told['allowed'] else 'refused'} now"
    ]
    lines += [f"  {sentence}" for sentence in told["because"]]
    if told["decisions"]:
        counts = ", ".join(f"{count} {result}" for result, count in sorted(told["decisions"].items()))
        lines.append(f"  So far: {counts}.")
    write("\n".join(lines) + "\n")
    return 0
