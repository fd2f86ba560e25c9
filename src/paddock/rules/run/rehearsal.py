"""A run that is not started: what its program would be told, worked out for an event that did not happen. Pure."""

from collections.abc import Mapping
from typing import Any

from paddock.rules.access.permissions import Grant
from paddock.rules.agents.config import masked_servers
from paddock.rules.run.context import NO_STATE, ResolvedAgent, RunInput, run_context
from paddock.rules.run.events import MESSAGE, RunEvent

ONLY_OF_A_RUN = ("run_id", "config", "state")
"""What is told elsewhere, or is not there before a run is: settings may hold secrets, state is a conversation's."""


def rehearsed(
    part: ResolvedAgent, grant: Grant, event_type: str, text: str, *, at: float, host_version: str
) -> Mapping[str, Any]:
    """The context of a run in a new conversation; nobody has said anything before."""
    message = {"id": "", "role": "user", "content": text}
    given = RunInput(
        text=text,
        message=message,
        params={},
        source="api",
        seq=1,
        at=at,
        earlier_history=False,
        event=None if event_type == MESSAGE else RunEvent(event_type),
    )
    context = run_context(part, grant, given, trace_id="", state=NO_STATE, host_version=host_version)
    context["resources"] = {**context["resources"], "mcp": masked_servers(context["resources"]["mcp"])}
    return {name: value for name, value in context.items() if name not in ONLY_OF_A_RUN}
