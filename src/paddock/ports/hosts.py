"""The other hosts that share a store: who is there, whose sessions nobody owns, and what one host asks of another."""

import time
from collections.abc import Sequence
from typing import Protocol

from paddock.rules.cluster import KnownHost
from paddock.rules.values import Value

ASKED_SECONDS = 10.0
"""How long whoever asks another host waits for an answer."""


def steady_seconds() -> float:
    """Count seconds that go on while this process, or the whole machine, is stopped; nobody sets this clock."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class Beat(Value, frozen=True):
    """Answer to a host's heartbeat."""

    held: bool
    """False: this host was declared gone and owns nothing any more."""
    store_seconds: float
    """How long the store itself has been up."""
    peers: Sequence[KnownHost]
    changes: str = ""
    """Another text whenever something was changed that every host keeps in memory."""


class LeftBehind(Value, frozen=True):
    """A session with something unfinished that no living host owns, and why its last owner is gone."""

    session_id: str
    why: str


class PendingRequest(Value, frozen=True):
    """Something one host asks of another; `answer` is there once it is done."""

    request_id: str
    body: bytes
    answer: bytes | None = None


class Hosts(Protocol):
    """The register of hosts beside the log they share. Times are the store's own."""

    @property
    def boot(self) -> int:
        """The number of this host, from this start on; another one after it was declared gone."""
        ...

    def clock(self) -> float:
        """The time of day by the store's clock. It is asked with every beat, and this machine's steady clock counts on
        from there: so hosts whose own clocks differ agree on what is due and what has expired."""
        ...

    async def name(self) -> str:
        """Name of this store, the same for every host that shares it."""
        ...

    async def beat(self) -> Beat: ...
    async def declare_gone(self, boots: Sequence[int], why: str) -> Sequence[int]:
        """Those of them that were still silent, and now own nothing any more. Each is returned to one caller."""
        ...

    async def leave(self, why: str) -> None:
        """Own nothing from now on; what is unfinished is for the others."""
        ...

    async def register(self) -> None:
        """Become a host under a new number."""
        ...

    async def left_behind(self, *, limit: int) -> Sequence[LeftBehind]: ...
    async def settled(self, boots: Sequence[int]) -> None:
        """Nothing is left of these, who were known to be gone before it was looked for what they left. Those who ended
        only a moment ago stay unsettled: what they were writing may come after."""
        ...

    async def ask(self, boot: int, errand: PendingRequest) -> None:
        """Put something on record for that host to do."""
        ...

    async def asked(self, *, limit: int) -> Sequence[PendingRequest]:
        """Open requests to this host, oldest first, without those nobody waits for any more."""
        ...

    async def answer(self, errand_id: str, answer: bytes) -> None: ...
    async def answered(self, errand_id: str) -> tuple[bytes | None, bool]:
        """The answer, and whether the host that was asked is still there."""
        ...

    async def tidy(self) -> None:
        """Forget errands and hosts that are long gone."""
        ...
