"""This host's place among the others, as its last beat told it.

Built before everything that has to know whether this host still owns what it runs, or whose turn it is to tidy up;
`peers.py` keeps it up to date.
"""

from collections.abc import Sequence

from paddock.ports.hosts import Hosts, steady_seconds
from paddock.rules.cluster.leases import Peer, housekeeper, is_sure, others


class Membership:
    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts
        self.known: Sequence[Peer] = ()
        """Every host of the register, this one included."""
        self.beat_at = steady_seconds()
        """When the last beat that counts was sent."""

    @property
    def others(self) -> Sequence[Peer]:
        return others(self.known, self._hosts.boot)

    @property
    def is_housekeeper(self) -> bool:
        """True at the one host that works for all."""
        return housekeeper(self.known) == self._hosts.boot

    def held(self) -> bool:
        """Tell whether this host may still act for its sessions, as far as its own clock tells."""
        return is_sure(steady_seconds() - self.beat_at)

    def keeps_house(self) -> bool:
        """Tell whether this host does the work that one host does for all, and still holds its lease."""
        return self.is_housekeeper and self.held()
