"""What a house needs when it may be one of several: the bus, the way to the other hosts, and who tidies up."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import structlog

from paddock.bus.chosen import bus_at
from paddock.host.agents.stored import StoredAgents
from paddock.host.cluster.attaching import Attaching
from paddock.host.cluster.forwarding import Owners
from paddock.host.cluster.peers import Peers
from paddock.host.keeping.audit import Audit
from paddock.host.keeping.deletion import Directories
from paddock.host.keeping.forgetting import DirectoriesEverywhere
from paddock.host.runs.runs import Runs
from paddock.host.runs.working_directories import WorkingDirectories
from paddock.host.session.sessions import Sessions
from paddock.host.streams.live import Live
from paddock.host.streams.tails import Tails
from paddock.knowledge.ingest import Ingest
from paddock.ports import Store
from paddock.ports.artifacts import Blobs
from paddock.ports.bus import Bus
from paddock.ports.hosts import Hosts
from paddock.rules.agents.extras import needed_for
from paddock.runners.gateway import Gateway
from paddock.runners.installed.shared_plugins import SharedPlugins
from paddock.runners.packages import InstalledPlugins
from paddock.settings import EMBEDDED, Settings
from paddock.storage.chosen import hosts_in
from paddock.storage.files.local import FileBlobs

log = structlog.get_logger("paddock.cluster")


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """The way to other hosts. With an embedded store there is none, and nothing here is used."""

    bus: Bus
    owners: Owners
    hosts: Hosts | None = None
    live: Live | None = None
    named_bus: bool = False
    """Whether somebody named the bus, so that its absence is worth a word."""

    @property
    def shared(self) -> bool:
        return self.hosts is not None


def neighbourhood_of(settings: Settings, store: Store) -> Neighbourhood:
    hosts, bus = hosts_in(store), bus_at(settings.bus)
    live = Live(bus) if hosts is not None else None
    return Neighbourhood(bus, Owners(hosts, bus, live), hosts, live, settings.bus != EMBEDDED)


def peers_of(
    near: Neighbourhood, *, sessions: Sessions, tails: Tails, runs: Runs, audit: Audit, clock: Callable[[], float]
) -> Peers | None:
    """This host among the others; None where it is the only one there can be."""
    if near.hosts is None or near.live is None:
        return None
    peers = Peers(near.hosts, near.bus, near.live, sessions=sessions, owners=near.owners, note=audit.soon, clock=clock)
    near.bus.on_lost = tails.look_again
    peers.bus_is_away = lambda: near.named_bus and not near.bus.healthy()
    runs.may_act = peers.held
    sessions.outage.is_ours = peers.held
    runs.outage = sessions.outage
    return peers


def keep_in_step(settings: Settings, peers: Peers | None, stored: StoredAgents, ingest: Ingest) -> None:
    """What every host keeps for itself follows what others changed; what one is enough for is done by one."""
    if peers is None:
        return
    if settings.shares_signing_keys:
        from paddock.storage.postgres.commands import agree

        peers.on_change.append(lambda: agree(settings.store, settings.signing_file))
    if settings.artifacts == EMBEDDED:
        peers.on_others.append(lambda: _tell_of_files(peers))
    if settings.bus == EMBEDDED:
        peers.on_others.append(lambda: _tell_of_bus(peers))
    peers.on_change.append(stored.load)
    peers.on_beat.append(ingest.wake)
    ingest.may_work = lambda: peers.is_housekeeper and peers.held()


def everywhere(here: WorkingDirectories, owners: Owners, peers: Peers | None) -> Directories:
    """Who removes what a forgotten conversation left on disks."""
    return here if peers is None else DirectoriesEverywhere(here, owners, lambda: peers.others)


def _tell_of_files(peers: Peers) -> None:
    if peers.others:
        text = (
            "files are kept in this host's own directory, and other hosts cannot read them: set artifacts to s3://..."
        )
        log.warning(text, action="peers.files")


def _tell_of_bus(peers: Peers) -> None:
    if peers.others:
        text = "this host has no bus to other hosts, so what they say to each other comes late: set bus to nats://..."
        log.warning(text, action="peers.bus")


def shared_plugins_of(
    settings: Settings, peers: Peers | None, store: Store, audit: Audit, clock: Callable[[], float]
) -> SharedPlugins | None:
    """Who puts in place here what was installed at any host."""
    if peers is None:
        return None
    shared = SharedPlugins(InstalledPlugins(settings.data.absolute()), store, note=audit.soon, clock=clock)
    peers.on_change.append(shared.wake)
    return shared


def attaching_of(
    near: Neighbourhood, gateway: Gateway, peers: Peers | None, audit: Audit, clock: Callable[[], float]
) -> Attaching:
    """How runners from elsewhere are let in, here and at all other hosts."""
    attaching = Attaching(gateway.attach_tokens, owners=near.owners, peers=peers, note=audit.soon, clock=clock)
    if peers is not None:
        gateway.guests.peers = attaching.addresses
        peers.on_others.append(gateway.guests.tell_peers)
    return attaching


def blobs_of(settings: Settings) -> Blobs:
    """Where the bytes of files are kept. A bucket is shared by all hosts, a directory is this host's own."""
    if settings.artifacts == "embedded":
        return FileBlobs(settings.data / "blobs")
    with needed_for("keeping files in S3"):
        from paddock.storage.files.s3 import S3Blobs

    return S3Blobs(settings.artifacts, beside=Path(settings.data) / "blobs")
