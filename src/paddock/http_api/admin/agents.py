"""Agents over HTTP: everybody sees which there are and whether they can answer; administrators see and change them."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Annotated, Any, Literal

from paddock.host.agents.agents import AgentBinding, Agents, Origin
from paddock.host.agents.shapes import AgentShape
from paddock.host.agents.stored import StoredAgents
from paddock.host.people.principals import Principal
from paddock.host.runs.agent_health import AgentHealth, Health, HealthState, shown_definition
from paddock.host.runs.authority import Authority
from paddock.host.runs.workspace_resources import WorkspaceResources
from paddock.http_api.edge.auth import Auth
from paddock.http_api.edge.operations import Answered, Operations, Pydantic, operation
from paddock.http_api.edge.shapes import Answer, Json, Query, about, seen
from paddock.rules.access.permissions import RunScope
from paddock.rules.agents.resources import answers
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.log.payloads import MESSAGE
from paddock.rules.run.context import rehearsed

BASE = "/api/v1/agents"
ONE = f"{BASE}/{{agent}}"
MAX_EVENT, MAX_TEXT = 128, 2000
HOST_VERSION = version("paddock")
EXAMPLE = {"runner": "plugin:paddock/echo/default"}
AgentName = Annotated[str, about("The agent's name.", example="echo")]
Definition = Annotated[Json, Pydantic("AgentShape", AgentShape, tuple(AgentShape.model_fields))]


class Agent(Answer):
    """An agent. Its definition and its problem are for administrators."""

    agent_id: str
    label: str
    description: str
    runner_id: str
    default: bool
    origin: Annotated[Origin, about(example="built-in")]
    health: Annotated[HealthState, about(example="ok")]
    isolation: str | None = None
    problem: str | None = None
    runner_label: dict[str, str] | str | None = None
    runner_description: dict[str, str] | str | None = None
    definition: Json | None = None


class AgentList(Answer):
    agents: list[Agent]
    problem: Annotated[str, about("Of the agents file, for whoever runs the host.")] | None = None


class AgentQuery(Query):
    if_none_match: (
        Annotated[
            Literal["*"],
            about(
                "`*`: only make it, and never change one.",
                header="If-None-Match",
                must="be *, or left out: agents have no versions",
            ),
        ]
        | None
    ) = None


class OfferedModel(Answer):
    model_id: Annotated[str, about(example="demo")]
    type: Annotated[str, about(example="llm")]
    provider: Annotated[str, about(example="paddock")]
    default: bool


class OfferedTool(Answer):
    name: Annotated[str, about(example="add")]
    type: Annotated[str, about(example="python")]
    description: str
    read_only: bool


class OfferedBase(Answer):
    kb_id: str
    name: Annotated[str, about(example="Handbook")]


class Resources(Answer):
    """All that agents of the workspace can be given; who may use what of it is each agent's."""

    models: list[OfferedModel]
    tools: list[OfferedTool]
    knowledge_bases: list[OfferedBase]


class AllowanceQuery(Query):
    event: Annotated[
        str,
        about(
            "The type of the event; `message.received` by default.",
            must=f"may have at most {MAX_EVENT} characters",
            max_length=MAX_EVENT,
        ),
    ] = ""
    text: Annotated[
        str,
        about(
            "What somebody would say.",
            must=f"may have at most {MAX_TEXT} characters",
            max_length=MAX_TEXT,
            example="What is the weather?",
        ),
    ] = ""


class Allowance(Answer):
    """The grant and the context of a run that is worked out and not started."""

    agent_id: str
    runner_id: str
    event: str
    answers: bool
    grant: Json | None = None
    context: Json | None = None
    problem: str | None = None


@dataclass(frozen=True, kw_only=True)
class AgentsDoor(Operations):
    group = "Agents"
    auth: Auth
    agents: Agents
    health: AgentHealth
    stored: StoredAgents
    offers: WorkspaceResources
    authority: Authority
    clock: Callable[[], float]

    @operation("GET", BASE, {200: "All of the workspace."})
    async def list(self, who: Principal) -> AgentList:
        """List the agents there are"""
        bindings = self.agents.list(who.workspace_id)
        found = await self.health.check(who.workspace_id, bindings)
        listed = [self._seen(who, binding, health) for binding, health in zip(bindings, found, strict=True)]
        return AgentList(listed, (self.health.file_problem or None) if who.operator else None)

    @operation("GET", ONE, {200: "As it is now."}, errors=(404,))
    async def get(self, who: Principal, agent: AgentName) -> Agent:
        """Look at an agent"""
        return await self._whole(who, self._find(who, agent))

    @operation(
        "PUT", ONE, {201: "It was made.", 200: "It was changed."}, role="admin", errors=(404, 409), example=EXAMPLE
    )
    async def put(self, who: Principal, agent: AgentName, query: AgentQuery, body: Definition) -> Answered[Agent]:
        """Make or change an agent"""
        manifest = await self.health.manifest(str(body.get("runner")), who.workspace_id)
        anew = query.if_none_match is not None
        binding, new = await self.stored.put(who, agent, body, manifest, anew=anew)
        return Answered(await self._whole(who, binding), 201 if new else 200)

    @operation("DELETE", ONE, {204: "It is gone."}, role="admin", errors=(404, 409))
    async def delete(self, who: Principal, agent: AgentName) -> None:
        """Take an agent away"""
        await self.stored.delete(who, agent)

    @operation("GET", "/api/v1/resources", {200: "The default model first, then by price."}, role="admin")
    async def resources(self, who: Principal) -> Resources:
        """List all that agents can be given"""
        offered, default = await self.offers.refresh(who.workspace_id), self.offers.default_model
        return Resources(
            [
                OfferedModel(one.model_id, one.model_type, one.provider, one.model_id == default)
                for one in offered.models
            ],
            [OfferedTool(one.name, one.tool_type, one.description, one.read_only) for one in offered.tools],
            [OfferedBase(one.kb_id, one.name) for one in offered.bases],
        )

    @operation("GET", f"{ONE}/allowance", {200: "The grant of a run that started now."}, role="admin", errors=(404,))
    async def allowance(self, who: Principal, agent: AgentName, query: AllowanceQuery) -> Allowance:
        """Show what an agent would get for an event

        Nothing is started: manifest, plugin file, agent and workspace are cut down as for a run."""
        event, binding = query.event or MESSAGE, self._find(who, agent)
        await self.authority.prepare(agent, who.workspace_id)
        part = self.authority.agent(binding, who.workspace_id)
        refusal = self.authority.refusal(agent, who.workspace_id)
        scope = RunScope("", who.workspace_id, who.user_id, agent, "")
        grant = None if part is None else part.allowance.for_run(scope, deadline_at=0.0)
        context: Any = None
        if part is not None and grant is not None:
            context = rehearsed(part, grant, event, query.text, at=self.clock(), host_version=HOST_VERSION)
        return Allowance(
            agent_id=agent,
            runner_id=binding.runner_id,
            event=event,
            answers=answers(binding.events, event),
            grant=None if grant is None else dict(grant.summary()),
            context=context,
            problem=None if refusal is None else refusal.for_operators if who.operator else refusal.message,
        )

    def _find(self, who: Principal, agent_id: str) -> AgentBinding:
        binding = self.agents.get(agent_id, who.workspace_id)
        if binding is None:
            raise HostError(ErrorCode.NOT_FOUND, f"there is no agent {agent_id[:64]!r}")
        return binding

    async def _whole(self, who: Principal, binding: AgentBinding) -> Agent:
        [health] = await self.health.check(who.workspace_id, [binding])
        return self._seen(who, binding, health, whole=True)

    def _seen(self, who: Principal, binding: AgentBinding, health: Health, *, whole: bool = False) -> Agent:
        """Show an agent as everybody may know it. Its config may hold secrets; its problem is for administrators."""
        manifest = health.manifest
        return seen(
            Agent,
            binding,
            default=binding.agent_id == self.agents.default_agent_id,
            health=health.state,
            isolation=self.authority.isolation(binding, who.workspace_id),
            problem=health.problem_for(operator=who.operator) if who.role == "admin" else None,
            runner_label=(manifest.label or None) if manifest else None,
            runner_description=(manifest.description or None) if manifest else None,
            definition=shown_definition(binding, manifest) if whole and who.role == "admin" else None,
        )
