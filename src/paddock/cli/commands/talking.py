"""Talking to agents: what `chat` and `explain` take."""

import sys
from typing import Annotated

import typer

from paddock.cli.commands.options import Data, Url, option


def chat(
    message: Annotated[str | None, typer.Argument(help="What to say; without it, a conversation.")] = None,
    agent: Annotated[str | None, option("--agent", says="Which agent to talk to.", metavar="A")] = None,
    url: Url = None,
    data: Data = None,
    thread: Annotated[str | None, option("--thread", says="Go on with this conversation.", metavar="ID")] = None,
    as_json: Annotated[bool, option("--json", says="Print the events (AG-UI), one JSON object per line.")] = False,
) -> None:
    """Talk to an agent of a running host.

    A key for a host on another machine is read from PADDOCK_API_KEY.
    """
    from paddock.cli.chat import chat as talk

    sys.exit(talk(message, agent=agent, url=url, data=data, thread=thread, as_json=as_json))


def explain(
    run: Annotated[str, typer.Argument(help="The run: its taskId, or your runId.")],
    action: Annotated[str, typer.Argument(help="The host call, such as history.page.")],
    resource: Annotated[str, typer.Argument(help="What it is about: a tool, a model, a state scope.")] = "",
    url: Url = None,
    data: Data = None,
    as_json: Annotated[bool, option("--json", says="Print the answer as JSON.")] = False,
) -> None:
    """Say why a run may, or may not, make a host call."""
    from paddock.cli.explain import explain as tell

    sys.exit(tell(run, action, resource, url=url, data=data, as_json=as_json))
