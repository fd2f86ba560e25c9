"""All doors of the HTTP API in one application. Everything it needs arrives as an argument; nothing is decided here."""

from collections.abc import Callable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from paddock.host.agent_health import AgentHealth
from paddock.host.agents import Agents
from paddock.host.approvals import Approvals
from paddock.host.branches import Branches
from paddock.host.controls import Controls
from paddock.host.days import Days
from paddock.host.explanations import Explanations
from paddock.host.exports import Exports
from paddock.host.inbox import Inbox
from paddock.host.keeping import Keeping
from paddock.host.runs_view import RunsView
from paddock.host.stored_agents import StoredAgents
from paddock.host.tails import Tails
from paddock.host.users import Users
from paddock.http_api.admin import AdminDoor
from paddock.http_api.ag_ui_door import AgUiDoor
from paddock.http_api.agents import AgentsDoor
from paddock.http_api.approvals import ApprovalsDoor
from paddock.http_api.attach import AttachDoor, AttachingGateway
from paddock.http_api.auth import Auth
from paddock.http_api.branches import BranchesDoor
from paddock.http_api.errors import Endpoint, Handler, not_routed
from paddock.http_api.explain import ExplainDoor
from paddock.http_api.history import AgentName, HistoryDoor
from paddock.http_api.knowledge import KnowledgeDoor
from paddock.http_api.openapi import DescriptionDoor
from paddock.http_api.probes import Probes, Ready
from paddock.http_api.run_streams import RunStreams
from paddock.http_api.runs import RunsDoor
from paddock.http_api.sessions import SessionsDoor
from paddock.http_api.tokens import Tokens
from paddock.http_api.users import UsersDoor
from paddock.ports import ApiKeys
from paddock.ports.attachments import Attachments, NoAttachments
from paddock.ports.knowledge import KnowledgeBases
from paddock.rules.rows import AuditRow

AG_UI = "/api/v1/agent/ag-ui"
AG_UI_OF_AN_AGENT = f"{AG_UI}/"
RUNS = "/api/v1/agent/runs"


def create_app(
    *,
    inbox: Inbox,
    controls: Controls,
    keeping: Keeping,
    runs: RunsView,
    tails: Tails,
    agents: Agents,
    gateway: AttachingGateway,
    keys: ApiKeys,
    health: AgentHealth,
    stored_agents: StoredAgents,
    ready: Ready,
    local_token: str | None = None,
    keep_alive_seconds: float = 15.0,
    note: Callable[[AuditRow], None] = lambda _row: None,
    knowledge: KnowledgeBases | None = None,
    knowledge_changed: Callable[[str], None] = lambda _workspace: None,
    approvals: Approvals | None = None,
    explanations: Explanations | None = None,
    attachments: Attachments | None = None,
    users: Users | None = None,
    days: Days | None = None,
    branches: Branches | None = None,
    exports: Exports | None = None,
    tokens: Tokens | None = None,
) -> "ShortWay":
    """The application. `local_token` lets the host's own command line in as administrator; `note` writes
    down what administrators decided."""
    streams = RunStreams(tails=tails, runs=runs, keeping=keeping, keep_alive_seconds=keep_alive_seconds)
    auth = Auth(keys, local_token=local_token, tokens=tokens)
    attachments = attachments or NoAttachments()
    ag_ui = AgUiDoor(auth=auth, inbox=inbox, streams=streams, agents=agents)
    native = RunsDoor(auth=auth, inbox=inbox, runs=runs, streams=streams, attachments=attachments)
    sessions = SessionsDoor(
        auth=auth,
        controls=controls,
        keeping=keeping,
        inbox=inbox,
        tails=tails,
        keep_alive_seconds=keep_alive_seconds,
    )
    routes = [
        *_ag_ui(ag_ui),
        *(_explain(ExplainDoor(auth=auth, runs=runs, explanations=explanations)) if explanations else []),
        *_native(native),
        *_sessions(sessions),
        *(_approvals(ApprovalsDoor(auth=auth, approvals=approvals)) if approvals else []),
        *_admin(AdminDoor(auth=auth, gateway=gateway, keys=keys, note=note)),
        *_agents(AgentsDoor(auth=auth, agents=agents, health=health, stored=stored_agents)),
        WebSocketRoute("/api/v1/runners/attach", AttachDoor(gateway)),
        *_probes(Probes(ready)),
        *_description(DescriptionDoor()),
    ]
    if branches is not None and exports is not None:
        routes += _branches(BranchesDoor(auth=auth, branches=branches, controls=controls, exports=exports))
    if users is not None:
        routes += _users(UsersDoor(auth=auth, users=users))
    if days is not None:
        history = HistoryDoor(auth=auth, days=days, attachments=attachments, agent_name=_names_of(agents))
        routes.append(_route("GET", "/api/v1/agent/history", history.get))
    if knowledge is not None:
        routes += _knowledge(KnowledgeDoor(auth=auth, bases=knowledge, changed=knowledge_changed))
    app = Starlette(routes=routes, exception_handlers={HTTPException: not_routed})
    return ShortWay(app, ag_ui=Endpoint(ag_ui.post), runs=Endpoint(native.post))


class ShortWay:
    """The two calls that start a run go straight to their door; matching routes would cost more than reading them.

    Everything else, and every other method on their paths, goes the ordinary way.
    """

    def __init__(self, app: Starlette, *, ag_ui: ASGIApp, runs: ASGIApp) -> None:
        self._app = app
        self._ag_ui = ag_ui
        self._runs = runs
        self.routes = app.routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._way(scope)(scope, receive, send)

    def _way(self, scope: Scope) -> ASGIApp:
        if scope["type"] != "http" or scope["method"] != "POST":
            return self._app
        path: str = scope["path"]
        if path == RUNS:
            return self._runs
        agent = path.removeprefix(AG_UI_OF_AN_AGENT)
        if len(agent) < len(path) and agent and "/" not in agent:
            scope["path_params"] = {"agent": agent}
            return self._ag_ui
        return self._app


def _ag_ui(door: AgUiDoor) -> list[BaseRoute]:
    base = AG_UI
    return [
        _route("POST", f"{base}/{{agent}}", door.post),
        _route("POST", base, door.post),
        _route("GET", f"{base}/{{agent}}/capabilities", door.capabilities),
        _route("GET", f"{base}/capabilities", door.capabilities),
    ]


def _native(door: RunsDoor) -> list[BaseRoute]:
    base = RUNS
    return [
        _route("POST", base, door.post),
        _route("GET", f"{base}/{{run}}/events", door.events),
        _route("POST", f"{base}/{{run}}/cancel", door.cancel),
        _route("GET", f"{base}/{{run}}", door.get),
    ]


def _sessions(door: SessionsDoor) -> list[BaseRoute]:
    base, one = "/api/v1/agent/sessions", "/api/v1/agent/sessions/{thread}"
    return [
        _route("GET", base, door.list),
        _route("POST", base, door.open),
        _route("GET", one, door.get),
        _route("PATCH", one, door.patch),
        _route("DELETE", one, door.delete),
        _route("POST", f"{one}/messages", door.message),
        _route("POST", f"{one}/items/{{item}}/erase", door.erase),
        _route("POST", f"{one}/control", door.control),
        _route("GET", f"{one}/events", door.events),
    ]


def _explain(door: ExplainDoor) -> list[BaseRoute]:
    return [_route("GET", f"{RUNS}/{{run}}/explain", door.get)]


def _approvals(door: ApprovalsDoor) -> list[BaseRoute]:
    base = "/api/v1/approvals"
    return [_route("GET", base, door.list), _route("POST", f"{base}/{{approval}}", door.decide)]


def _admin(door: AdminDoor) -> list[BaseRoute]:
    return [
        _route("GET", "/api/v1/runners", door.runners),
        _route("POST", "/api/v1/runners/attach-tokens", door.mint_attach_token),
        _route("GET", "/api/v1/api-keys", door.keys),
        _route("POST", "/api/v1/api-keys", door.create_key),
        _route("DELETE", "/api/v1/api-keys/{key}", door.revoke_key),
    ]


def _branches(door: BranchesDoor) -> list[BaseRoute]:
    one = "/api/v1/agent/sessions/{thread}"
    return [
        _route("POST", f"{one}/edit", door.edit),
        _route("POST", f"{one}/regenerate", door.regenerate),
        _route("PUT", f"{one}/messages/{{item}}/feedback", door.feedback),
        _route("GET", f"{one}/export", door.export),
    ]


def _users(door: UsersDoor) -> list[BaseRoute]:
    return [_route("GET", "/api/v1/users/me", door.get), _route("PATCH", "/api/v1/users/me", door.patch)]


def _names_of(agents: Agents) -> AgentName:
    def name(agent_id: str, workspace: str) -> str | None:
        binding = agents.get(agent_id, workspace)
        return binding.label if binding is not None else None

    return name


def _agents(door: AgentsDoor) -> list[BaseRoute]:
    return [
        _route("GET", "/api/v1/agents", door.list),
        _route("GET", "/api/v1/agents/{agent}", door.get),
        _route("PUT", "/api/v1/agents/{agent}", door.put),
        _route("DELETE", "/api/v1/agents/{agent}", door.delete),
    ]


def _knowledge(door: KnowledgeDoor) -> list[BaseRoute]:
    base = "/api/v1/knowledge"
    return [
        _route("GET", base, door.list),
        _route("POST", base, door.create),
        _route("GET", f"{base}/{{kb}}", door.get),
        _route("DELETE", f"{base}/{{kb}}", door.delete),
        _route("GET", f"{base}/{{kb}}/documents", door.documents),
        _route("POST", f"{base}/{{kb}}/documents", door.add),
        _route("DELETE", f"{base}/{{kb}}/documents/{{document}}", door.delete_document),
        _route("GET", f"{base}/{{kb}}/jobs/{{job}}", door.job),
        _route("POST", f"{base}/{{kb}}/search", door.search),
    ]


def _probes(probes: Probes) -> list[BaseRoute]:
    return [
        _route("GET", "/healthz", probes.healthz),
        _route("GET", "/readyz", probes.readyz),
        _route("GET", "/", probes.page),
    ]


def _description(door: DescriptionDoor) -> list[BaseRoute]:
    return [_route("GET", "/api/openapi.json", door.document), _route("GET", "/api/docs", door.page)]


def _route(method: str, path: str, handler: Handler) -> Route:
    route = Route(path, Endpoint(handler), methods=[method])
    route.methods = {method}  # no HEAD: asking for the head of a stream would follow the run to its end
    return route
