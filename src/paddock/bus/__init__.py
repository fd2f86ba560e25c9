"""The buses that wake hosts: inside one process, or through NATS. Only the chosen one is loaded."""

from paddock.ports.bus import Bus
from paddock.rules.errors import needed_for

EMBEDDED = "embedded"


def bus_at(address: str) -> Bus:
    """The bus of that address, not opened yet."""
    if address == EMBEDDED:
        from paddock.bus.in_process import InProcessBus

        return InProcessBus()
    with needed_for("a bus on NATS"):
        from paddock.bus.nats import NatsBus

    return NatsBus(address)
