"""What an agent would get: the grant of a run that started now, worked out and not started. Reads and answers only."""

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from paddock.host.agents import Agents
from paddock.host.authority import Authority
from paddock.http_api.auth import Auth
from paddock.http_api.bodies import json_response
from paddock.http_api.routing import route
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.event_routing import answers
from paddock.rules.permissions import RunScope
from paddock.rules.run_events import MESSAGE


class AllowancesDoor:
    def __init__(self, *, auth: Auth, agents: Agents, authority: Authority) -> None:
        self._auth = auth
        self._agents = agents
        self._authority = authority

    def routes(self) -> Sequence[BaseRoute]:
        return [route("GET", "/api/v1/agents/{agent}/allowance", self.get)]

    async def get(self, request: Request) -> Response:
        who = await self._auth.admin(request.scope)
        agent_id, event = request.path_params["agent"], request.query_params.get("event", MESSAGE)
        binding = self._agents.get(agent_id, who.workspace_id)
        if binding is None:
            raise HostError(ErrorCode.NOT_FOUND, f"there is no agent {agent_id[:64]!r}")
        await self._authority.prepare(agent_id, who.workspace_id)
        part = self._authority.part(binding, who.workspace_id)
        refusal = self._authority.refusal(agent_id, who.workspace_id)
        scope = RunScope("", who.workspace_id, who.user_id, agent_id, "")
        told = {
            "agentId": agent_id,
            "runnerId": binding.runner_id,
            "event": event,
            "answers": answers(binding.events, event),
            "grant": None if part is None else part.allowance.for_run(scope, deadline_at=0.0).summary(),
            "problem": None if refusal is None else refusal.message,
        }
        return json_response({name: value for name, value in told.items() if value is not None})
