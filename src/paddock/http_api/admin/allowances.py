"""What an agent would get for an event: grant and context of a run that is worked out and not started."""

from collections.abc import Callable, Sequence
from importlib.metadata import version

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from paddock.host.agents.agents import Agents
from paddock.host.runs.authority import Authority
from paddock.http_api.edge.auth import Auth
from paddock.http_api.edge.bodies import json_response
from paddock.http_api.edge.routing import route
from paddock.rules.access.permissions import RunScope
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.platforms.event_routing import answers
from paddock.rules.run.events import MESSAGE
from paddock.rules.run.rehearsal import rehearsed

MAX_EVENT, MAX_TEXT = 128, 2000
HOST_VERSION = version("paddock")


class AllowancesDoor:
    def __init__(self, *, auth: Auth, agents: Agents, authority: Authority, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._auth = auth
        self._agents = agents
        self._authority = authority

    def routes(self) -> Sequence[BaseRoute]:
        return [route("GET", "/api/v1/agents/{agent}/allowance", self.get)]

    async def get(self, request: Request) -> Response:
        who = await self._auth.admin(request.scope)
        agent_id = request.path_params["agent"]
        event = _bounded(request, "event", MAX_EVENT) or MESSAGE
        text = _bounded(request, "text", MAX_TEXT)
        binding = self._agents.get(agent_id, who.workspace_id)
        if binding is None:
            raise HostError(ErrorCode.NOT_FOUND, f"there is no agent {agent_id[:64]!r}")
        await self._authority.prepare(agent_id, who.workspace_id)
        part = self._authority.part(binding, who.workspace_id)
        refusal = self._authority.refusal(agent_id, who.workspace_id)
        scope = RunScope("", who.workspace_id, who.user_id, agent_id, "")
        grant = None if part is None else part.allowance.for_run(scope, deadline_at=0.0)
        context = part and grant and rehearsed(part, grant, event, text, at=self._clock(), host_version=HOST_VERSION)
        told = {
            "agentId": agent_id,
            "runnerId": binding.runner_id,
            "event": event,
            "answers": answers(binding.events, event),
            "grant": None if grant is None else grant.summary(),
            "context": context,
            "problem": None if refusal is None else refusal.for_operators if who.operator else refusal.message,
        }
        return json_response({name: value for name, value in told.items() if value is not None})


def _bounded(request: Request, name: str, most: int) -> str:
    given = request.query_params.get(name, "")
    if len(given) > most:
        raise HostError(ErrorCode.INVALID_ARGUMENT, f"{name} may have at most {most} characters")
    return given
