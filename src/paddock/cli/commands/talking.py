"""`paddock chat` and `paddock explain`."""

import json
import sys
from pathlib import Path
from urllib.parse import quote, urlencode

from paddock.cli.client import connect
from paddock.cli.commands.options import argument, option, with_data, with_url
from paddock.cli.output import write


def print_explanation(
    run: str, action: str, resource: str, *, url: str | None, data: Path | None, as_json: bool
) -> int:
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


@argument("message", says="What to say; without it, a conversation.", required=False)
@option("--agent", says="Which agent to talk to.", metavar="A")
@with_url
@with_data
@option("--thread", says="Go on with this conversation.", metavar="ID")
@option("--json", "as_json", says="Print the events (AG-UI), one JSON object per line.", flag=True)
def chat(
    message: str | None, agent: str | None, url: str | None, data: Path | None, thread: str | None, as_json: bool
) -> None:
    """Talk to an agent of a running host.

    A key for a host on another machine is read from PADDOCK_API_KEY.
    """
    from paddock.cli.chatting.chat import chat as talk

    sys.exit(talk(message, agent=agent, url=url, data=data, thread=thread, as_json=as_json))


@argument("run", says="The run: its taskId, or your runId.")
@argument("action", says="The host call, such as history.page.")
@argument("resource", says="What it is about: a tool, a model, a state scope.", required=False, default="")
@with_url
@with_data
@option("--json", "as_json", says="Print the answer as JSON.", flag=True)
def explain(run: str, action: str, resource: str, url: str | None, data: Path | None, as_json: bool) -> None:
    """Say why a run may, or may not, make a host call."""
    sys.exit(print_explanation(run, action, resource, url=url, data=data, as_json=as_json))
