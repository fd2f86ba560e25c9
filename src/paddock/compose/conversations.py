"""Builds sessions and everything that puts messages into them. Follows the machinery of runs."""

from dataclasses import dataclass

from paddock.compose.ground import Foundation, Resources
from paddock.compose.machinery import Machinery
from paddock.compose.parts import MIB, ingress_of, timeouts_of
from paddock.host.agents.stored import StoredAgents
from paddock.host.automation.automations import Automations
from paddock.host.automation.scheduler import Scheduler
from paddock.host.conversations.controls import Controls
from paddock.host.conversations.inbox import NAMES_PURPOSE, Inbox, ThreadNames
from paddock.host.people.taking_over import TakingOver
from paddock.host.people.users import Users
from paddock.host.platforms.delta_stream import DeltaStream
from paddock.host.platforms.ingress import Ingress
from paddock.host.session.manager import SessionManager
from paddock.host.session.services import SessionServices
from paddock.host.session.sessions import Sessions
from paddock.host.session.word_quota import WordLimits, Words
from paddock.host.streams.open_streams import OpenStreams, StreamLimits
from paddock.storage.files.cluster_secret import Sealer


@dataclass(frozen=True, slots=True)
class Conversations:
    """Sessions, and the parts that put messages into them."""

    sessions: Sessions
    stored_agents: StoredAgents
    users: Users
    inbox: Inbox
    controls: Controls
    scheduler: Scheduler
    automations: Automations
    ingress: Ingress
    open_streams: OpenStreams
    taking_over: TakingOver


def open_conversations(ground: Foundation, granted: Resources, machinery: Machinery) -> Conversations:
    store, clock, settings = ground.store, ground.clock, ground.settings
    agents, runs, forwarding = machinery.agents, machinery.runs, ground.near.forwarding
    sessions, users = _sessions(ground, granted, machinery), Users(store, clock=clock)
    inbox = Inbox(
        sessions=sessions, runs=runs, agents=agents, records=store, clock=clock, users=users, forwarding=forwarding
    )
    scheduler = Scheduler(store, inbox, agents=agents, clock=clock, tokens=settings.takes_tokens)
    limits = StreamLimits(of_user=settings.streams_per_user, of_workspace=settings.streams_per_workspace)
    streams = OpenStreams(store, clock=clock, limits=limits)
    return Conversations(
        sessions=sessions,
        stored_agents=StoredAgents(
            agents, kept=store, records=store, clock=clock, opened=settings.api_agents, sealing=Sealer(ground.secret)
        ),
        users=users,
        inbox=inbox,
        controls=Controls(sessions=sessions, agents=agents, records=store, clock=clock, forwarding=forwarding),
        scheduler=scheduler,
        automations=Automations(store, scheduler, agents=agents, authority=runs.authority, users=users, clock=clock),
        ingress=_ingress(ground, granted, machinery, inbox),
        open_streams=streams,
        taking_over=TakingOver(store, sessions, forwarding=forwarding, streams=streams, clock=clock),
    )


def _sessions(ground: Foundation, granted: Resources, machinery: Machinery) -> Sessions:
    store, clock, spawn, settings = ground.store, ground.clock, ground.tasks.spawn, ground.settings
    timeouts, runs, agents = timeouts_of(settings), machinery.runs, machinery.agents
    limits = WordLimits(of_user=settings.user_words_mib * MIB, of_workspace=settings.workspace_words_mib * MIB)
    services = SessionServices(
        log=store,
        outage=ground.present.outage,
        tails=ground.tails,
        words=Words(store, spawn=spawn, limits=limits),
        audit=ground.audit,
        authorise=runs.granting.authorise,
        performer=runs,
        manager=SessionManager(
            records=store, agents=agents, readiness=runs.authority, clock=clock, spawn=spawn, timeouts=timeouts
        ),
        agents=agents,
        clock=clock,
        spawn=spawn,
        deliveries_wait=granted.outside.deliveries.wake,
    )
    return Sessions(store, ground.present.loops, services, shared=ground.near.shared, timeouts=timeouts)


def _ingress(ground: Foundation, granted: Resources, machinery: Machinery, inbox: Inbox) -> Ingress:
    outside, attachments = granted.outside, granted.attachments
    pieces = DeltaStream(ground.tails, outside.platforms, clock=ground.clock, spawn=ground.tasks.spawn)
    names = ThreadNames(ground.store, ground.secret.key(NAMES_PURPOSE))
    return ingress_of(inbox, ground.store, machinery.agents, attachments, outside.approvals, pieces, names)
