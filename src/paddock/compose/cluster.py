"""Builds the bus, the link to other hosts, and the store of files, as the settings name them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import structlog

from paddock.bus import bus_at
from paddock.host.cluster.forwarding import ClusterLink, Forwarding
from paddock.host.cluster.membership import Membership
from paddock.host.streams.live import Live
from paddock.ports import Store
from paddock.ports.artifacts import Blobs
from paddock.ports.bus import Bus
from paddock.rules.errors import needed_for
from paddock.settings import EMBEDDED, Settings
from paddock.storage.chosen import hosts_in
from paddock.storage.files.local import FileBlobs

log = structlog.get_logger("paddock.cluster")


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """The link to other hosts. With an embedded store there is neither a link nor a membership."""

    bus: Bus
    forwarding: Forwarding
    link: ClusterLink | None = None
    members: Membership | None = None

    @property
    def shared(self) -> bool:
        return self.link is not None

    def keeps_house(self) -> bool:
        """Tell whether this host does the work that one host does for all."""
        return self.members is None or self.members.keeps_house()

    def count(self) -> int:
        return 1 + (len(self.members.others) if self.members is not None else 0)


def neighbourhood_of(settings: Settings, store: Store) -> Neighbourhood:
    hosts, bus = hosts_in(store), bus_at(settings.bus)
    if hosts is None:
        return Neighbourhood(bus, Forwarding())
    link = ClusterLink(hosts, bus, Live(bus), bus_is_named=settings.bus != EMBEDDED)
    return Neighbourhood(bus, Forwarding(link), link, Membership(hosts))


def warnings_of(settings: Settings, members: Membership) -> Sequence[Callable[[], None]]:
    """Return warnings for the operator, for when other hosts join that cannot share files or messages with this one."""
    warnings: list[Callable[[], None]] = []
    if settings.artifacts == EMBEDDED:
        text = (
            "files are kept in this host's own directory, and other hosts cannot read them: set artifacts to s3://..."
        )
        warnings.append(partial(_warn, members, text, "peers.files"))
    if settings.bus == EMBEDDED:
        text = "this host has no bus to other hosts, so what they say to each other comes late: set bus to nats://..."
        warnings.append(partial(_warn, members, text, "peers.bus"))
    return warnings


def _warn(members: Membership, text: str, action: str) -> None:
    if members.others:
        log.warning(text, action=action)


def blobs_of(settings: Settings) -> Blobs:
    """Return the store of files' bytes. A bucket is shared by all hosts, a directory belongs to this host."""
    if settings.artifacts == "embedded":
        return FileBlobs(settings.data / "blobs")
    with needed_for("keeping files in S3"):
        from paddock.storage.files.s3 import S3Blobs

    return S3Blobs(settings.artifacts, beside=Path(settings.data) / "blobs")
