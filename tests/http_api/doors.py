"""The doors of a small house, really open: uvicorn on a free loopback port, clients that talk HTTP to it."""

import asyncio
import json
import socket
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal

import httpx
import uvicorn

from host.scripted import BUILTIN, OPENED, AtRunner, ScriptedGateway, SmallHouse, small_house
from http_api.ordering import Overheard
from paddock.host.agents.stored import StoredAgents
from paddock.host.cluster.attaching import Attaching
from paddock.host.cluster.forwarding import Forwarding
from paddock.host.conversations.attachments import UserAttachments
from paddock.host.conversations.branches import Branches
from paddock.host.conversations.client_files import ClientFiles
from paddock.host.conversations.client_history import ClientHistory
from paddock.host.conversations.client_runs import ClientRuns
from paddock.host.conversations.days import Days
from paddock.host.conversations.exports import Exports
from paddock.host.conversations.inbox import ThreadNames
from paddock.host.conversations.ui_actions import UiActions
from paddock.host.people.overview import Overview
from paddock.host.people.principals import Operators
from paddock.host.people.taking_over import TakingOver
from paddock.host.people.users import Users
from paddock.host.runs.agent_health import AgentHealth
from paddock.host.runs.lookup import Explanations
from paddock.host.runs.workspace_resources import WorkspaceResources
from paddock.host.streams.open_streams import OpenStreams, StreamLimits
from paddock.http_api.admin.agents import AgentsDoor
from paddock.http_api.admin.console import ConsoleDoor
from paddock.http_api.admin.keys import KeysDoor
from paddock.http_api.admin.knowledge import KnowledgeDoor
from paddock.http_api.admin.overview import OverviewDoor
from paddock.http_api.admin.probes import IsReady, Probes
from paddock.http_api.admin.runners import AttachDoor, RunnersDoor
from paddock.http_api.ag_ui.connect import ThreadSnapshot
from paddock.http_api.ag_ui.door import AgUiDoor
from paddock.http_api.description.door import DescriptionDoor
from paddock.http_api.edge.app import Api
from paddock.http_api.edge.auth import Auth, Callers
from paddock.http_api.edge.bounds import PATIENCE, Crowd, Patience
from paddock.http_api.edge.connection import served
from paddock.http_api.edge.operations import Door
from paddock.http_api.edge.tokens import Tokens as CallerTokens
from paddock.http_api.native.attachments import AttachmentsDoor
from paddock.http_api.native.automation import AutomationsDoor, CalendarDoor
from paddock.http_api.native.branches import BranchesDoor
from paddock.http_api.native.history import HistoryDoor
from paddock.http_api.native.people import ApprovalsDoor, UiActionsDoor, UsersDoor
from paddock.http_api.native.platforms import DeliveriesDoor, EventsDoor
from paddock.http_api.native.runs import RunsDoor
from paddock.http_api.native.sessions import SessionsDoor
from paddock.http_api.streams.run_stream import RunStreams
from paddock.images.cleaning import ChildPictures
from paddock.knowledge.bases import Bases
from paddock.knowledge.ingest import Ingest
from paddock.models.catalog import ModelCatalog
from paddock.models.demo import DemoModel
from paddock.ports import ApiKeyRow, RunnerStatus, Store
from paddock.ports.attachments import Attachments
from paddock.rules.access.signatures import SigningKeys
from paddock.rules.cluster import ClusterSecret
from paddock.rules.conversations.attachments import AttachmentLimits
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.rows import AuditRow
from paddock.storage.chosen import knowledge_in
from paddock.storage.files.cluster_secret import Sealer
from paddock.telemetry.metrics import Metrics
from paddock.tools.calendar import CalendarTools
from paddock.tools.catalog import ToolCatalog
from paddock.tools.functions import FunctionTools

KEYS = SigningKeys("k1", {"k1": b"a secret of the tests", "k0": b"an older one"})
NAMES_KEY = b"a key of the tests"
SECRET = ClusterSecret((b"a secret of the tests, long enough for it",), "the tests")
LOCAL_TOKEN = "local-token-of-the-test"


def a_body(thread: str | None = None, run: str = "run-001", text: str = "hi", **changes: Any) -> dict[str, Any]:
    body = {
        "threadId": thread or str(uuid.uuid4()),
        "runId": run,
        "messages": [{"id": "m1", "role": "user", "content": text}],
        "forwardedProps": {"runtime_mode": "chat"},
    }
    return body | changes


def assert_problem(answer: httpx.Response, status: int, code: str, detail: str) -> None:
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert (answer.status_code, problem["status"], problem["code"]) == (status, status, code)
    assert problem["detail"].startswith(detail)
    assert problem.keys() - {"reason"} == {"type", "title", "status", "detail", "code"}


class Tokens:
    def __init__(self) -> None:
        self.minted: list[tuple[str, str, str, Any]] = []

    def mint(self, workspace: str, author: str, name: str, permissions: Any = None, *, by: Any = None) -> str:
        self.minted.append((workspace, author, name, permissions))
        return "one-time-token"

    def digest_of(self, token: str) -> bytes:
        return token.encode()

    def admit(
        self, digest: bytes, workspace: str, author: str, name: str, permissions: Any = None, *, by: Any = None
    ) -> None:
        raise AssertionError("there is no other host")


class AttachableGateway(ScriptedGateway):
    """The scripted gateway with a list to show."""

    def __init__(self) -> None:
        super().__init__()
        self.attach_tokens = Tokens()
        self.statuses: list[RunnerStatus] = []
        self.listed_for: list[str | None] = []

    async def list_runners(self, workspace: str | None = None) -> list[RunnerStatus]:
        self.listed_for.append(workspace)
        return self.statuses

    async def refresh(self, plugin: str, workspace: str) -> list[RunnerStatus]:
        found = [status for status in self.statuses if status.plugin == plugin]
        if not found:
            raise HostError(ErrorCode.NOT_FOUND, "there is no such plugin")
        return found


@dataclass
class Doors:
    house: SmallHouse
    gateway: AttachableGateway
    url: str
    client: httpx.AsyncClient
    """Without a key, from this very machine."""
    ready: list[tuple[bool, str]]
    app: Api
    noted: list[AuditRow]
    """What administrators did, as far as it is noted by the way."""
    open_streams: OpenStreams

    async def key_for(
        self,
        user: str,
        workspace: str = "default",
        role: Literal["user", "admin"] = "user",
        *,
        by_operator: bool = True,
    ) -> dict[str, str]:
        """The headers of somebody with a key."""
        key = f"pdk_{user}_{workspace}_{role}"
        row = ApiKeyRow(key, sha256(key.encode()).digest(), workspace, user, role, 0.0, by_operator=by_operator)
        await self.house.store.add_key(row)
        return {"Authorization": f"Bearer {key}"}

    async def post(self, body: Any, **options: Any) -> httpx.Response:
        return await self.client.post("/api/v1/agent/runs", json=body, **options)

    async def answered(self, run: AtRunner, *pieces: str) -> None:
        """The runner streams the pieces, each in a commit of its own, and is done."""
        for piece in pieces:
            run.delta(piece)
            await self.recorded(run.run_id, piece)
        run.message("".join(pieces))
        run.say("run.completed")
        await self.ended(run.run_id)

    async def recorded(self, run_id: str, piece: str) -> None:
        session = (await self.row(run_id)).session_id
        follower = self.house.tails.follow(session, run_id, 0)
        wanted = json.dumps(piece, ensure_ascii=False).encode()
        async with asyncio.timeout(30):
            while not any(wanted in entry.fact.payload for entry in await follower.next(1) if entry.fact.is_delta):
                pass
        follower.close()

    async def row(self, run_id: str) -> Any:
        row = await self.house.store.run(run_id)
        assert row is not None
        return row

    async def ended(self, run_id: str) -> None:
        async with asyncio.timeout(30):
            while (await self.row(run_id)).status not in {"completed", "failed", "cancelled"}:
                await asyncio.sleep(0.005)


def uploads_of(house: SmallHouse, keys: SigningKeys = KEYS, limits: AttachmentLimits | None = None) -> UserAttachments:
    parts = (house.artifacts, house.store, ChildPictures())
    return UserAttachments(*parts, keys=lambda: keys, clock=house.approvals.clock, limits=limits)


def app_of(
    house: SmallHouse,
    gateway: Any,
    *,
    users: Users,
    knowledge: Bases,
    open_streams: OpenStreams,
    ready: IsReady = lambda: (True, "ready"),
    keep_alive: float = 15.0,
    attachments: Attachments,
    uploads: UserAttachments | None = None,
    tokens: CallerTokens | None = None,
    note: Callable[[AuditRow], None] = lambda _row: None,
    origins: Sequence[str] = (),
    calls_per_second: float = 0.0,
    operators: Sequence[str] = (),
    metrics: Metrics | None = None,
) -> Api:
    """The same doors as the real house has, on the parts of a small one."""
    auth = Auth(
        house.store,
        Callers(local_token=LOCAL_TOKEN, tokens=tokens, origins=origins, operators=Operators.named(operators)),
        calls_per_second=calls_per_second,
        refused=house.audit.counted,
        streams=open_streams,
    )
    store, clock = house.store, time.time
    models, given = ModelCatalog([DemoModel()]), FunctionTools(BUILTIN, clock=clock)
    tools = ToolCatalog([given, CalendarTools(house.calendars, clock=clock)])
    offers = WorkspaceResources(models=models, tools=tools, clock=clock, default_model="demo")
    streams = RunStreams(
        tails=house.tails,
        runs=house.view,
        keeping=house.keeping,
        open_streams=open_streams,
        keep_alive_seconds=keep_alive,
        attachments=attachments,
    )
    branches = Branches(controls=house.controls, inbox=house.inbox, records=store, clock=clock)
    health = AgentHealth(house.agents, house.runs.authority)
    sealing = Sealer(SECRET)
    stored = StoredAgents(house.agents, kept=store, records=store, clock=clock, opened=OPENED, sealing=sealing)
    names, history = ThreadNames(store, NAMES_KEY), ClientHistory(store)
    standing = ThreadSnapshot(records=store, controls=house.controls, streams=streams, history=history)
    ag_ui = AgUiDoor(
        auth=auth,
        inbox=house.inbox,
        streams=streams,
        agents=house.agents,
        names=names,
        client_runs=ClientRuns(history, ClientFiles(attachments), house.approvals, clock=house.approvals.clock),
        standing=standing,
    )
    attaching = Attaching(gateway.attach_tokens, forwarding=Forwarding(), members=None, note=note, clock=time.time)
    overview = Overview(store, house.approvals.clock, note=note)
    doors: list[Door] = [
        SessionsDoor(
            auth=auth,
            names=names,
            controls=house.controls,
            keeping=house.keeping,
            inbox=house.inbox,
            tails=house.tails,
            keep_alive_seconds=keep_alive,
            attachments=attachments,
        ),
        BranchesDoor(auth=auth, names=names, branches=branches, controls=house.controls, exports=Exports(store)),
        HistoryDoor(
            auth=auth, names=names, days=Days(store, users), attachments=attachments, agent_name=house.agents.label_of
        ),
        AttachmentsDoor(auth=auth, attachments=uploads or uploads_of(house)),
        UiActionsDoor(
            auth=auth,
            actions=UiActions(inbox=house.inbox, log=store, records=store, clock=house.approvals.clock),
        ),
        UsersDoor(auth=auth, users=users),
        ApprovalsDoor(auth=auth, approvals=house.approvals),
        AutomationsDoor(auth=auth, automations=house.automations),
        CalendarDoor(auth=auth, calendars=house.calendars),
        EventsDoor(platforms=house.platforms, ingress=house.ingress, note=house.audit.counted, clock=time.time),
        DeliveriesDoor(auth=auth, deliveries=house.deliveries),
        AgentsDoor(
            auth=auth,
            agents=house.agents,
            health=health,
            stored=stored,
            offers=offers,
            authority=house.runs.authority,
            clock=clock,
        ),
        KnowledgeDoor(auth=auth, bases=knowledge, changed=lambda _workspace: None),
        RunnersDoor(auth=auth, gateway=gateway, attaching=attaching, note=house.audit.soon),
        KeysDoor(
            auth=auth,
            keys=store,
            note=house.audit.soon,
            taking_over=TakingOver(store, house.sessions, forwarding=Forwarding(), streams=open_streams, clock=clock),
        ),
        AttachDoor(gateway, open_streams),
        OverviewDoor(
            auth=auth, names=names, overview=overview, explanations=Explanations(store, house.approvals.clock)
        ),
        Probes(auth=auth, ready=ready, numbers=(metrics or Metrics("test")).page),
        ConsoleDoor(),
    ]
    native = RunsDoor(
        auth=auth,
        names=names,
        history=history,
        inbox=house.inbox,
        runs=house.view,
        streams=streams,
        attachments=attachments,
        automations=house.automations,
    )
    doors = [native, ag_ui, *doors]
    return Api([*doors, DescriptionDoor(doors)], origins=origins)


@asynccontextmanager
async def open_doors(
    store: Store | None = None,
    *,
    keep_alive: float = 15.0,
    attachments: Attachments | None = None,
    tokens: CallerTokens | None = None,
    origins: Sequence[str] = (),
    calls_per_second: float = 0.0,
    keys: SigningKeys = KEYS,
    uploading: AttachmentLimits | None = None,
    patience: Patience = PATIENCE,
    crowd: Crowd | None = None,
    operators: Sequence[str] = (),
    metrics: Metrics | None = None,
    stream_limits: StreamLimits | None = None,
    **house_of: Any,
) -> AsyncGenerator[Doors]:
    gateway = AttachableGateway()
    async with small_house(store, gateway=gateway, **house_of) as house:
        ready = [(True, "ready")]
        users = Users(house.store, clock=time.time)
        house.inbox.users = users
        kept = knowledge_in(getattr(house.store, "wrapped", house.store))
        ingest = Ingest(kept)
        knowledge = Bases(kept, ingest)
        uploads = uploads_of(house, keys, uploading)
        noted: list[AuditRow] = []
        open_streams = OpenStreams(house.store, limits=stream_limits)
        app = app_of(
            house,
            gateway,
            users=users,
            knowledge=knowledge,
            open_streams=open_streams,
            ready=lambda: ready[0],
            keep_alive=keep_alive,
            attachments=attachments or uploads,
            uploads=uploads,
            tokens=tokens,
            note=noted.append,
            origins=origins,
            calls_per_second=calls_per_second,
            operators=operators,
            metrics=metrics,
        )
        reading = asyncio.create_task(ingest.run())
        looking = asyncio.create_task(open_streams.keep_looking())
        overheard = Overheard()
        async with (
            serving(app, patience, crowd) as url,
            httpx.AsyncClient(base_url=url, timeout=30, transport=overheard) as client,
        ):
            yield Doors(house, gateway, url, client, ready, app, noted, open_streams)
        reading.cancel()
        looking.cancel()
        assert overheard.wrong == []


class Server(uvicorn.Server):
    """Leaves the signals to the tests."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


@asynccontextmanager
async def serving(app: Any, patience: Patience = PATIENCE, crowd: Crowd | None = None) -> AsyncGenerator[str]:
    """As `paddock serve` does it."""
    config = served(app, crowd or Crowd(), patience)
    server = Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        task = asyncio.create_task(server.serve([listener]))
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            server.force_exit = True
            await asyncio.wait_for(task, 30)
