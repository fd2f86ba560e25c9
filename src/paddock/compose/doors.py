"""Builds every door of a host from the parts it needs."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from paddock.compose.parts import MIB
from paddock.compose.rooms import Rooms
from paddock.host.agents.agents import Agents
from paddock.host.conversations.branches import Branches
from paddock.host.conversations.client_files import ClientFiles
from paddock.host.conversations.client_history import ClientHistory
from paddock.host.conversations.client_runs import ClientRuns
from paddock.host.conversations.days import Days
from paddock.host.conversations.exports import Exports
from paddock.host.conversations.inbox import NAMES_PURPOSE, ThreadNames
from paddock.host.conversations.ui_actions import UiActions
from paddock.host.people.overview import Overview
from paddock.host.people.principals import Operators
from paddock.host.runs.lookup import Explanations, RunsView
from paddock.http_api.admin.agents import AgentsDoor
from paddock.http_api.admin.console import ConsoleDoor
from paddock.http_api.admin.keys import KeysDoor
from paddock.http_api.admin.knowledge import KnowledgeDoor
from paddock.http_api.admin.overview import OverviewDoor
from paddock.http_api.admin.probes import Probes
from paddock.http_api.admin.runners import AttachDoor, RunnersDoor
from paddock.http_api.ag_ui.connect import ThreadSnapshot
from paddock.http_api.ag_ui.door import AgUiDoor
from paddock.http_api.ag_ui.input import AgUiLimits
from paddock.http_api.description.door import DescriptionDoor
from paddock.http_api.edge.app import Api
from paddock.http_api.edge.auth import Auth, Callers
from paddock.http_api.edge.operations import Door
from paddock.http_api.edge.tokens import IssuerKeys, TokenRules, Tokens
from paddock.http_api.native.attachments import AttachmentsDoor
from paddock.http_api.native.automation import AutomationsDoor, CalendarDoor
from paddock.http_api.native.branches import BranchesDoor
from paddock.http_api.native.history import HistoryDoor
from paddock.http_api.native.people import ApprovalsDoor, UiActionsDoor, UsersDoor
from paddock.http_api.native.platforms import DeliveriesDoor, EventsDoor
from paddock.http_api.native.runs import RunsDoor
from paddock.http_api.native.sessions import SessionsDoor
from paddock.http_api.streams.run_stream import RunStreams
from paddock.runners.gateway import Gateway
from paddock.settings import Settings
from paddock_sdk.protocol.ids import RunnerId

Ready = Callable[[], tuple[bool, str]]
MetricsPage = Callable[[str | None], bytes]


@dataclass(frozen=True, slots=True)
class Entrance:
    """Parts that nearly every door needs: authentication, names of threads, and streams of runs."""

    auth: Auth
    runs: RunsView
    streams: RunStreams
    names: ThreadNames
    history: ClientHistory


def application(rooms: Rooms, ready: Ready, metrics_page: MetricsPage, local_token: str | None) -> Api:
    """All doors in one application. `local_token` lets the host's own command line in as administrator."""
    entrance, talks = _entrance(rooms, local_token), rooms.talks
    native = RunsDoor(
        auth=entrance.auth,
        names=entrance.names,
        history=entrance.history,
        inbox=talks.inbox,
        runs=entrance.runs,
        streams=entrance.streams,
        attachments=rooms.granted.attachments,
        automations=talks.automations,
    )
    doors = [
        native,
        _ag_ui(rooms, entrance),
        *_talking(rooms, entrance),
        *_outside(rooms, entrance),
        *_administering(rooms, entrance),
        Probes(auth=entrance.auth, ready=ready, numbers=metrics_page),
        *_open_to_all(rooms),
    ]
    return Api([*doors, DescriptionDoor(doors)], origins=rooms.ground.settings.cors_origins)


def _entrance(rooms: Rooms, local_token: str | None) -> Entrance:
    ground, settings, open_streams = rooms.ground, rooms.ground.settings, rooms.talks.open_streams
    store = ground.store
    auth = Auth(
        store,
        Callers(
            local_token=local_token,
            tokens=tokens_of(settings),
            origins=settings.cors_origins,
            operators=Operators.named(settings.operators),
        ),
        calls_per_second=settings.calls_per_second,
        refused=ground.audit.counted,
        streams=open_streams,
    )
    runs = RunsView(store)
    streams = RunStreams(
        tails=ground.tails,
        runs=runs,
        keeping=rooms.upkeep.deletion,
        open_streams=open_streams,
        keep_alive_seconds=settings.keep_alive_seconds,
        attachments=rooms.granted.attachments,
    )
    return Entrance(auth, runs, streams, ThreadNames(store, ground.secret.key(NAMES_PURPOSE)), ClientHistory(store))


def _ag_ui(rooms: Rooms, entrance: Entrance) -> AgUiDoor:
    ground, talks, attachments = rooms.ground, rooms.talks, rooms.granted.attachments
    streams, history, settings = entrance.streams, entrance.history, ground.settings
    standing = ThreadSnapshot(records=ground.store, controls=talks.controls, streams=streams, history=history)
    return AgUiDoor(
        auth=entrance.auth,
        inbox=talks.inbox,
        streams=streams,
        agents=rooms.machinery.agents,
        names=entrance.names,
        client_runs=ClientRuns(history, ClientFiles(attachments), rooms.granted.outside.approvals, clock=ground.clock),
        standing=standing,
        limits=AgUiLimits(settings.ag_ui_body_mib * MIB, settings.ag_ui_messages),
    )


def _talking(rooms: Rooms, entrance: Entrance) -> list[Door]:
    ground, talks, attachments = rooms.ground, rooms.talks, rooms.granted.attachments
    auth, names, store, clock = entrance.auth, entrance.names, ground.store, ground.clock
    branches = Branches(controls=talks.controls, inbox=talks.inbox, records=store, clock=clock)
    return [
        SessionsDoor(
            auth=auth,
            names=names,
            controls=talks.controls,
            keeping=rooms.upkeep.deletion,
            inbox=talks.inbox,
            tails=ground.tails,
            keep_alive_seconds=ground.settings.keep_alive_seconds,
            attachments=attachments,
        ),
        BranchesDoor(auth=auth, names=names, branches=branches, controls=talks.controls, exports=Exports(store)),
        HistoryDoor(
            auth=auth,
            names=names,
            days=Days(store, talks.users),
            attachments=attachments,
            agent_name=rooms.machinery.agents.label_of,
        ),
        AttachmentsDoor(auth=auth, attachments=attachments),
        UiActionsDoor(auth=auth, actions=UiActions(inbox=talks.inbox, log=store, records=store, clock=clock)),
        UsersDoor(auth=auth, users=talks.users),
    ]


def _outside(rooms: Rooms, entrance: Entrance) -> list[Door]:
    ground, outside, auth = rooms.ground, rooms.granted.outside, entrance.auth
    return [
        ApprovalsDoor(auth=auth, approvals=outside.approvals),
        AutomationsDoor(auth=auth, automations=rooms.talks.automations),
        CalendarDoor(auth=auth, calendars=rooms.granted.calendars),
        EventsDoor(
            platforms=outside.platforms,
            ingress=rooms.talks.ingress,
            note=ground.audit.counted,
            clock=ground.clock,
            body_bytes=ground.settings.event_body_mib * MIB,
        ),
        DeliveriesDoor(auth=auth, deliveries=outside.deliveries),
    ]


def _administering(rooms: Rooms, entrance: Entrance) -> list[Door]:
    ground, machinery, upkeep = rooms.ground, rooms.machinery, rooms.upkeep
    auth, names, note, store, clock = entrance.auth, entrance.names, ground.audit.soon, ground.store, ground.clock
    overview, resources, agents = Overview(store, clock, note=note), rooms.granted.of_workspaces, machinery.agents
    return [
        AgentsDoor(
            auth=auth,
            agents=agents,
            health=upkeep.health,
            stored=rooms.talks.stored_agents,
            offers=resources,
            authority=machinery.runs.authority,
            clock=clock,
        ),
        KnowledgeDoor(auth=auth, bases=rooms.granted.documents.bases, changed=resources.forget),
        RunnersDoor(
            auth=auth,
            gateway=machinery.gateway,
            attaching=upkeep.attaching,
            note=note,
            claimed=partial(_is_claimed, machinery.gateway, agents),
        ),
        KeysDoor(auth=auth, keys=store, note=note, taking_over=rooms.talks.taking_over),
        OverviewDoor(auth=auth, names=names, overview=overview, explanations=Explanations(store, clock)),
    ]


def _is_claimed(gateway: Gateway, agents: Agents, plugin: str) -> bool:
    """Tell whether agents of the operator rely on a plugin. Their secrets go to the one that serves it."""
    return gateway.has_installed(plugin) or any(
        plugin == str(RunnerId.parse(runner).plugin) for runner in agents.named_runners()
    )


def _open_to_all(rooms: Rooms) -> list[Door]:
    machinery = rooms.machinery
    return [
        AttachDoor(machinery.gateway, rooms.talks.open_streams, rooms.upkeep.attaching.way_to),
        machinery.run_door,
        ConsoleDoor(),
    ]


def tokens_of(settings: Settings) -> Tokens | None:
    if not settings.takes_tokens:
        return None
    rules = TokenRules(
        issuer=settings.jwt_issuer,
        audience=settings.jwt_audience,
        workspace_claim=settings.jwt_workspace_claim,
        role_claim=settings.jwt_role_claim,
    )
    secret = settings.jwt_secret_file.read_bytes().strip() if settings.jwt_secret_file else None
    source = settings.issuer_keys
    return Tokens(
        rules, secret=secret, keys=IssuerKeys(source, issuer=settings.jwt_issuer).find if source is not None else None
    )
