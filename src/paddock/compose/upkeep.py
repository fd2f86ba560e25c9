"""Builds the parts that maintain a host while it works: deletion, sweeping, watched files, the other hosts."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from paddock.agent_program import is_program
from paddock.compose.cluster import warnings_of
from paddock.compose.conversations import Conversations
from paddock.compose.ground import Foundation, Resources
from paddock.compose.machinery import Machinery
from paddock.compose.named import WatchedProgram
from paddock.compose.parts import periods
from paddock.host.agents.agents import Agents
from paddock.host.agents.file import read_file
from paddock.host.agents.watch import AgentsWatch
from paddock.host.cluster.attaching import Attaching
from paddock.host.cluster.forwarding import Answering, RequestHandlers
from paddock.host.cluster.peers import Chore, Followers, Peers
from paddock.host.keeping.deletion import Deletion, Directories
from paddock.host.keeping.retention import Retention
from paddock.host.keeping.sweeping import Sweeper
from paddock.host.people.approvals import PERFORM_SECONDS
from paddock.host.runs.agent_health import AgentHealth
from paddock.runners.packages import InstalledPlugins
from paddock.runners.plugin_updates import PluginsWatch, SharedPlugins
from paddock.settings import EMBEDDED, Settings


@dataclass(frozen=True, slots=True)
class Upkeep:
    deletion: Deletion
    retention: Retention
    sweeper: Sweeper
    health: AgentHealth
    attaching: Attaching
    plugins_watch: PluginsWatch
    agents_watch: AgentsWatch | None
    """Watches the agents file, if there is one."""
    shared_plugins: SharedPlugins | None
    """Installs plugins that were installed at another host, where several share the store."""
    peers: Peers | None
    """The other hosts, where there may be some."""


def see_to_upkeep(ground: Foundation, granted: Resources, machinery: Machinery, talks: Conversations) -> Upkeep:
    store, blobs, clock, near = ground.store, ground.blobs, ground.clock, ground.near
    settings, gateway, note = ground.settings, machinery.gateway, ground.audit.soon
    everywhere = _everywhere(ground, machinery)
    deletion = Deletion(
        store,
        blobs,
        talks.sessions,
        clock=clock,
        directories=everywhere or machinery.directories,
        forwarding=near.forwarding,
    )
    own_files = settings.artifacts == EMBEDDED  # files in a host's own directory are swept there
    attaching = Attaching(
        gateway.attach_tokens, forwarding=near.forwarding, members=near.members, note=note, clock=clock
    )
    shared_plugins = _shared_plugins(ground)
    requests: RequestHandlers = {
        **talks.inbox.remote_handlers,
        **talks.controls.remote_handlers,
        **talks.taking_over.remote_handlers,
        **deletion.remote_handlers,
        **attaching.remote_handlers,
        **(everywhere.remote_handlers if everywhere is not None else {}),
    }
    followers = _followers(ground, granted, machinery, talks, shared_plugins)
    return Upkeep(
        deletion=deletion,
        retention=Retention(
            store, talks.sessions, deletion, clock=clock, periods=periods(settings), may_work=near.keeps_house
        ),
        sweeper=Sweeper(store, blobs, clock=clock, may_work=(lambda: True) if own_files else near.keeps_house),
        health=AgentHealth(machinery.agents, machinery.runs.authority),
        attaching=attaching,
        plugins_watch=machinery.plugins.watch(gateway, ground.audit, clock),
        agents_watch=_agents_watch(ground, granted, machinery.agents),
        shared_plugins=shared_plugins,
        peers=_peers(ground, talks, requests, followers),
    )


def _peers(ground: Foundation, talks: Conversations, requests: RequestHandlers, followers: Followers) -> Peers | None:
    near = ground.near
    if near.link is None or near.members is None:
        return None
    return Peers(
        near.link,
        near.members,
        sessions=talks.sessions,
        forwarding=near.forwarding,
        answering=Answering(near.link, requests),
        note=ground.audit.soon,
        clock=ground.clock,
        followers=followers,
    )


def _followers(
    ground: Foundation,
    granted: Resources,
    machinery: Machinery,
    talks: Conversations,
    shared_plugins: SharedPlugins | None,
) -> Followers:
    settings, members, approvals = ground.settings, ground.near.members, granted.outside.approvals
    if members is None:
        return Followers()
    return Followers(
        bus_lost=ground.tails.look_again,
        beaten=[granted.documents.ingest.wake],
        changed=[
            *([_agree_on_signing_keys(settings)] if settings.shares_signing_keys else []),
            talks.stored_agents.load,
            *([shared_plugins.wake] if shared_plugins is not None else []),
        ],
        hosts_changed=[*warnings_of(settings, members), machinery.gateway.attached.tell_peers],
        chores=[
            Chore(partial(granted.settling.settle, alone=False)),
            Chore(partial(approvals.recover, alone=False), every=PERFORM_SECONDS / 3),
        ],
    )


def _agree_on_signing_keys(settings: Settings) -> Callable[[], Awaitable[None]]:
    from paddock.storage.postgres.commands import agree

    return lambda: agree(settings.store, settings.signing_file)


def _everywhere(ground: Foundation, machinery: Machinery) -> Directories | None:
    members = ground.near.members
    if members is None:
        return None
    return Directories(machinery.directories, ground.near.forwarding, lambda: members.others)


def _shared_plugins(ground: Foundation) -> SharedPlugins | None:
    if not ground.near.shared:
        return None
    installed = InstalledPlugins(ground.settings.data.absolute())
    return SharedPlugins(installed, ground.store, note=ground.audit.soon, clock=ground.clock)


def _agents_watch(ground: Foundation, granted: Resources, agents: Agents) -> AgentsWatch | None:
    path, named, parts = ground.named.watched, ground.named, granted.beside
    if path is None:
        return None
    program = WatchedProgram(path, parts) if is_program(path) else None
    return AgentsWatch(
        path,
        agents,
        seen=named.seen,
        read=program.read if program is not None else partial(read_file, path, named.files),
        resources=named.defined.resources,
        prepare=program.prepare if program is not None else parts.prepare,
        note=ground.audit.soon,
        clock=ground.clock,
    )
