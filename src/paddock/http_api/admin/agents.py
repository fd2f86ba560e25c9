"""Agents over HTTP: everybody sees which there are and whether they can answer; administrators see and change them."""

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from paddock.host.agents.agents import AgentBinding, Agents
from paddock.host.agents.health import AgentHealth, Health, shown_definition
from paddock.host.agents.shapes import AgentShape
from paddock.host.agents.stored import StoredAgents
from paddock.host.calls.workspace_resources import WorkspaceResources
from paddock.host.people.principals import Principal
from paddock.http_api.edge.auth import Auth
from paddock.http_api.edge.bodies import json_response, read_object
from paddock.http_api.edge.routing import route
from paddock.rules.errors import ErrorCode, HostError


class AgentsDoor:
    def __init__(
        self, *, auth: Auth, agents: Agents, health: AgentHealth, stored: StoredAgents, offers: WorkspaceResources
    ) -> None:
        self._offers = offers
        self._auth = auth
        self._agents = agents
        self._health = health
        self._stored = stored

    def routes(self) -> Sequence[BaseRoute]:
        return [
            route("GET", "/api/v1/agents", self.list),
            route("GET", "/api/v1/agents/{agent}", self.get),
            route("PUT", "/api/v1/agents/{agent}", self.put),
            route("DELETE", "/api/v1/agents/{agent}", self.delete),
            route("GET", "/api/v1/resources", self.resources),
        ]

    async def list(self, request: Request) -> Response:
        who = await self._auth.principal(request.scope)
        bindings = self._agents.list(who.workspace_id)
        found = await self._health.check(who.workspace_id, bindings)
        listed = [self._seen(who, binding, health) for binding, health in zip(bindings, found, strict=True)]
        problem = self._health.file_problem if who.operator else None
        return json_response({"agents": listed} | ({"problem": problem} if problem else {}))

    async def get(self, request: Request) -> Response:
        who = await self._auth.principal(request.scope)
        return await self._answer(who, self._find(who, request.path_params["agent"]))

    async def put(self, request: Request) -> Response:
        who = await self._auth.admin(request.scope)
        given = await read_object(request, list(AgentShape.model_fields))
        manifest = await self._health.manifest(str(given.get("runner")), who.workspace_id)
        anew = request.headers.get("if-none-match")
        if anew not in (None, "*"):
            raise HostError(ErrorCode.INVALID_ARGUMENT, "If-None-Match must be *, or left out: agents have no versions")
        binding, new = await self._stored.put(who, request.path_params["agent"], given, manifest, anew=anew == "*")
        return await self._answer(who, binding, 201 if new else 200)

    async def delete(self, request: Request) -> Response:
        who = await self._auth.admin(request.scope)
        await self._stored.delete(who, request.path_params["agent"])
        return Response(status_code=204)

    async def resources(self, request: Request) -> Response:
        """All that agents of the workspace can be given; who may use what of it is each agent's."""
        who = await self._auth.admin(request.scope)
        offered = await self._offers.refresh(who.workspace_id)
        default = self._offers.default_model
        models = [{"modelId": one.model_id, "type": one.model_type, "provider": one.provider} for one in offered.models]
        models = [{**one, "default": one["modelId"] == default} for one in models]
        tools = [
            {"name": one.name, "type": one.tool_type, "description": one.description, "readOnly": one.read_only}
            for one in offered.tools
        ]
        bases = [{"kbId": one.kb_id, "name": one.name} for one in offered.bases]
        return json_response({"models": models, "tools": tools, "knowledgeBases": bases})

    def _find(self, who: Principal, agent_id: str) -> AgentBinding:
        binding = self._agents.get(agent_id, who.workspace_id)
        if binding is None:
            raise HostError(ErrorCode.NOT_FOUND, f"there is no agent {agent_id[:64]!r}")
        return binding

    async def _answer(self, who: Principal, binding: AgentBinding, status: int = 200) -> Response:
        [health] = await self._health.check(who.workspace_id, [binding])
        seen = dict(self._seen(who, binding, health))
        if who.role == "admin":
            seen["definition"] = shown_definition(binding, health.manifest)
        return json_response(seen, status)

    def _seen(self, who: Principal, binding: AgentBinding, health: Health) -> Mapping[str, Any]:
        """What everybody may know of an agent. Its config may hold secrets; what is wrong is for administrators."""
        manifest = health.manifest
        seen = {
            "agentId": binding.agent_id,
            "label": binding.label,
            "description": binding.description,
            "runnerId": binding.runner_id,
            "default": binding.agent_id == self._agents.default_agent_id,
            "origin": binding.origin,
            "health": health.state,
            "isolation": self._health.isolation(binding, who.workspace_id),
            "problem": health.told(operator=who.operator) if who.role == "admin" else None,
            "runnerLabel": manifest.label if manifest and manifest.label else None,
            "runnerDescription": manifest.description if manifest and manifest.description else None,
        }
        return {key: value for key, value in seen.items() if value is not None}
