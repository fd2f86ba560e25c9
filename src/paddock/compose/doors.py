"""The ways into the house: every door, given the parts it opens on."""

from dataclasses import dataclass
from functools import partial

from paddock.compose.house import House
from paddock.compose.parts import MIB
from paddock.host.conversations.branches import Branches
from paddock.host.conversations.client_files import ClientFiles
from paddock.host.conversations.client_history import ClientHistory
from paddock.host.conversations.client_runs import ClientRuns
from paddock.host.conversations.days import Days
from paddock.host.conversations.exports import Exports
from paddock.host.conversations.thread_names import PURPOSE as NAMES
from paddock.host.conversations.thread_names import ThreadNames
from paddock.host.conversations.ui_actions import UiActions
from paddock.host.people.overview import Overview
from paddock.host.people.principals import Operators
from paddock.host.runs.explanations import Explanations
from paddock.host.runs.lookup import RunsView
from paddock.http_api.admin.admin import AdminDoor
from paddock.http_api.admin.agents import AgentsDoor
from paddock.http_api.admin.allowances import AllowancesDoor
from paddock.http_api.admin.attach import AttachDoor
from paddock.http_api.admin.console import ConsoleDoor
from paddock.http_api.admin.deliveries import DeliveriesDoor
from paddock.http_api.admin.explain import ExplainDoor
from paddock.http_api.admin.knowledge import KnowledgeDoor
from paddock.http_api.admin.metrics import MetricsDoor
from paddock.http_api.admin.openapi import DescriptionDoor
from paddock.http_api.admin.overview import OverviewDoor
from paddock.http_api.admin.probes import Probes
from paddock.http_api.ag_ui.connect import Standing
from paddock.http_api.ag_ui.door import AgUiDoor
from paddock.http_api.ag_ui.input import AgUiLimits
from paddock.http_api.edge.app import ShortWay, create_app
from paddock.http_api.edge.auth import Auth
from paddock.http_api.edge.issuer_keys import IssuerKeys
from paddock.http_api.edge.routing import Door
from paddock.http_api.edge.tokens import TokenRules, Tokens
from paddock.http_api.native.approvals import ApprovalsDoor
from paddock.http_api.native.attachments import AttachmentsDoor
from paddock.http_api.native.automations import AutomationsDoor
from paddock.http_api.native.branches import BranchesDoor
from paddock.http_api.native.calendar import CalendarDoor
from paddock.http_api.native.events import EventsDoor
from paddock.http_api.native.history import HistoryDoor
from paddock.http_api.native.runs import RunsDoor
from paddock.http_api.native.sessions import SessionsDoor
from paddock.http_api.native.ui_actions import UiActionsDoor
from paddock.http_api.native.users import UsersDoor
from paddock.http_api.streams.run_streams import RunStreams
from paddock.settings import Settings
from paddock_sdk.protocol.ids import RunnerId


@dataclass(frozen=True, slots=True)
class Entrance:
    """What nearly every door needs: who calls, what they call their threads, and how a run is followed."""

    auth: Auth
    runs: RunsView
    streams: RunStreams
    names: ThreadNames
    history: ClientHistory


def application(house: House, settings: Settings, local_token: str | None) -> ShortWay:
    """All doors in one application. `local_token` lets the host's own command line in as administrator."""
    entrance = _entrance(house, settings, local_token)
    doors = [*_talking(house, settings, entrance), *_administering(house, entrance), *_open_to_all(house)]
    return create_app(
        ag_ui=_ag_ui(house, settings, entrance),
        native=RunsDoor(
            auth=entrance.auth,
            names=entrance.names,
            history=entrance.history,
            inbox=house.inbox,
            runs=entrance.runs,
            streams=entrance.streams,
            attachments=house.attachments,
            automations=house.automations,
        ),
        doors=doors,
        origins=settings.cors_origins,
    )


def _entrance(house: House, settings: Settings, local_token: str | None) -> Entrance:
    auth = Auth(
        house.store,
        local_token=local_token,
        tokens=tokens_of(settings),
        origins=settings.cors_origins,
        calls_per_second=settings.calls_per_second,
        operators=Operators.named(settings.operators),
        refused=house.audit.counted,
        streams=house.open_streams,
    )
    runs = RunsView(house.store)
    streams = RunStreams(
        tails=house.tails,
        runs=runs,
        keeping=house.keeping,
        open_streams=house.open_streams,
        keep_alive_seconds=settings.keep_alive_seconds,
        attachments=house.attachments,
    )
    return Entrance(auth, runs, streams, ThreadNames(house.store, house.secret.key(NAMES)), ClientHistory(house.store))


def _ag_ui(house: House, settings: Settings, entrance: Entrance) -> AgUiDoor:
    streams, history, attachments = entrance.streams, entrance.history, house.attachments
    standing = Standing(
        records=house.store, controls=house.controls, streams=streams, attachments=attachments, history=history
    )
    return AgUiDoor(
        auth=entrance.auth,
        inbox=house.inbox,
        streams=streams,
        agents=house.agents,
        names=entrance.names,
        client_runs=ClientRuns(history, ClientFiles(attachments), house.approvals, clock=house.clock),
        standing=standing,
        limits=AgUiLimits(settings.ag_ui_body_mib * MIB, settings.ag_ui_messages),
    )


def _talking(house: House, settings: Settings, entrance: Entrance) -> list[Door]:
    """Conversations: their messages, days, files, branches, and what comes of them."""
    auth, names = entrance.auth, entrance.names
    branches = Branches(controls=house.controls, inbox=house.inbox, records=house.store, clock=house.clock)
    actions = UiActions(inbox=house.inbox, log=house.store, records=house.store, clock=house.clock)
    return [
        SessionsDoor(
            auth=auth,
            names=names,
            controls=house.controls,
            keeping=house.keeping,
            inbox=house.inbox,
            tails=house.tails,
            keep_alive_seconds=settings.keep_alive_seconds,
            attachments=house.attachments,
        ),
        BranchesDoor(auth=auth, names=names, branches=branches, controls=house.controls, exports=Exports(house.store)),
        HistoryDoor(
            auth=auth,
            names=names,
            days=Days(house.store, house.users),
            attachments=house.attachments,
            agent_name=house.agents.label_of,
        ),
        AttachmentsDoor(auth=auth, attachments=house.attachments),
        UiActionsDoor(auth=auth, actions=actions),
        UsersDoor(auth=auth, users=house.users),
        ApprovalsDoor(auth=auth, approvals=house.approvals),
        AutomationsDoor(auth=auth, automations=house.automations),
        CalendarDoor(auth=auth, calendars=house.calendars),
        EventsDoor(
            platforms=house.platforms,
            ingress=house.ingress,
            note=house.audit.counted,
            clock=house.clock,
            body_bytes=settings.event_body_mib * MIB,
        ),
    ]


def _administering(house: House, entrance: Entrance) -> list[Door]:
    """Agents, runners, knowledge, keys, and looking over a workspace."""
    auth, names, note = entrance.auth, entrance.names, house.audit.soon
    overview = Overview(house.store, house.clock, note=note)
    return [
        ExplainDoor(auth=auth, names=names, overview=overview, explanations=Explanations(house.store, house.clock)),
        DeliveriesDoor(auth=auth, deliveries=house.deliveries),
        AgentsDoor(
            auth=auth, agents=house.agents, health=house.health, stored=house.stored_agents, offers=house.offers
        ),
        AllowancesDoor(auth=auth, agents=house.agents, authority=house.runs.authority, clock=house.clock),
        KnowledgeDoor(auth=auth, bases=house.bases, changed=house.offers.forget),
        AdminDoor(
            auth=auth,
            gateway=house.gateway,
            attaching=house.attaching,
            keys=house.store,
            note=note,
            claimed=partial(_is_claimed, house),
            taking_over=house.taking_over,
        ),
        MetricsDoor(auth=auth, page=house.metrics.page),
        OverviewDoor(auth=auth, names=names, overview=overview),
    ]


def _is_claimed(house: House, plugin: str) -> bool:
    """Whether agents of whoever runs the host rely on a plugin: their settings and secrets go to whoever serves it."""
    return house.gateway.has_installed(plugin) or any(
        plugin == str(RunnerId.parse(runner).plugin) for runner in house.agents.named_runners()
    )


def _open_to_all(house: House) -> list[Door]:
    """Doors that know their callers by something else than a key, or need not know them."""
    return [
        AttachDoor(house.gateway, house.open_streams, house.attaching.way_to),
        house.run_door,
        Probes(house.ready),
        ConsoleDoor(),
        DescriptionDoor(),
    ]


def tokens_of(settings: Settings) -> Tokens | None:
    """Callers by signed token, if a secret or an issuer's keys are set."""
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
