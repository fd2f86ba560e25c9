"""The hosts of the cluster as of this host's last beat, and whether this host still holds its lease.

Built before everything that needs it; `peers.py` keeps it up to date.
"""

from collections.abc import Sequence

from paddock.ports.hosts import Hosts, steady_seconds
from paddock.rules.cluster import KnownHost, housekeeper, is_sure, others


class Membership:
    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts
        self.known: Sequence[KnownHost] = ()
        """Every registered host, this one included."""
        self.beat_at = steady_seconds()
        """When the last successful beat was sent."""

    @property
    def others(self) -> Sequence[KnownHost]:
        return others(self.known, self._hosts.boot)

    @property
    def is_housekeeper(self) -> bool:
        """True at the one host that does the shared work."""
        return housekeeper(self.known) == self._hosts.boot

    def held(self) -> bool:
        """True while this host may act for its sessions, by its own clock."""
        return is_sure(steady_seconds() - self.beat_at)

    def keeps_house(self) -> bool:
        """True when this host does the shared work and still holds its lease."""
        return self.is_housekeeper and self.held()
