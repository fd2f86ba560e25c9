"""Sizes, rates and fair shares: caps of host calls, token buckets, who may start a run, whose turn is next. Pure."""

from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.rows import ArtifactsCap, StorageCap, UploadsCap
from paddock.rules.values import Value

MAX_STATE_VALUE_BYTES = 262_144
MAX_STATE_SCOPE_BYTES = 4 * 1024 * 1024
MAX_STATE_KEY_CHARS = 256
MAX_PAGE = 100
MAX_CALL_BYTES = 4 * 1024 * 1024
MAX_SMALL_CALL_BYTES = 64 * 1024
"""A call that carries nothing but names and numbers."""
MAX_MODEL_CALL_BYTES = 3 * 1024 * 1024
MAX_RERANK_DOCUMENTS = 64
MAX_TOOL_CALL_BYTES = 1024 * 1024
MAX_QUERY_CHARS = 10_000
MAX_ARTIFACT_INLINE_BYTES = 1024 * 1024
MAX_RANGE_BYTES = 1024 * 1024
MAX_STORAGE_KEY_CHARS = 256
MAX_STORAGE_VALUE_BYTES = 2 * 1024 * 1024
"""What fits a frame as base64 with room to spare; larger things are artifacts."""
MAX_ACTION_BYTES = 256 * 1024
MAX_BLOB_BYTES = 10 * 1024 * 1024
"""One value of a storage area; more than one call can carry is sent in parts."""
MAX_KEYS_PAGE = 1000

RUN_CALLS_PER_SECOND, RUN_BURST = 50.0, 100.0
PLUGIN_CALLS_PER_SECOND, PLUGIN_BURST = 500.0, 1000.0
REFUSALS_PER_SECOND, REFUSALS_BURST = 100.0, 1000.0
"""Refusals of one plugin that are answered at once; more of them wait, so that nobody fills the disk with them."""


class Rates(Value, frozen=True):
    """Rates of host calls for a run and a plugin. None lifts the limit."""

    run: tuple[float, float] | None = (RUN_CALLS_PER_SECOND, RUN_BURST)
    plugin: tuple[float, float] | None = (PLUGIN_CALLS_PER_SECOND, PLUGIN_BURST)
    """(calls a second on average, calls at once)"""

    @classmethod
    def of_a_run(cls, per_second: float) -> "Rates":
        """Make rates from calls a second of one run: twice that in a burst, ten times that for a plugin; 0 lifts
        all."""
        if per_second <= 0:
            return cls(run=None, plugin=None)
        return cls(run=(per_second, 2 * per_second), plugin=(10 * per_second, 20 * per_second))


@dataclass(slots=True)
class TokenBucket:
    """Token bucket: an average rate with bursts. Refused calls cost a token too, down to an empty bucket."""

    per_second: float
    burst: float
    tokens: float
    at: float

    @classmethod
    def full(cls, per_second: float, burst: float, now: float) -> "TokenBucket":
        return cls(per_second, burst, burst, now)

    def take(self, now: float) -> float:
        """Take one token; 0.0 when there was one, else the seconds until there is."""
        self.tokens = min(self.burst, self.tokens + max(0.0, now - self.at) * self.per_second)
        self.at = now
        if self.tokens >= 1.0:
            self.tokens -= 1.0
            return 0.0
        return (1.0 - self.tokens) / self.per_second

    def owe(self, now: float) -> float:
        """Take one token whether or not there is one; the seconds until it is paid for."""
        self.tokens = min(self.burst, self.tokens + max(0.0, now - self.at) * self.per_second) - 1.0
        self.at = now
        return max(0.0, -self.tokens / self.per_second)


MAX_BUCKETS = 10_000


@dataclass(frozen=True, slots=True)
class Buckets:
    """A bucket for each key. Those unused for longest are forgotten; a new one is full."""

    known: OrderedDict[Hashable, TokenBucket] = field(default_factory=OrderedDict[Hashable, TokenBucket])

    def of(self, key: Hashable, per_second: float, burst: float, now: float) -> TokenBucket:
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = TokenBucket.full(per_second, burst, now)
            if len(self.known) > MAX_BUCKETS:
                self.known.popitem(last=False)
        self.known.move_to_end(key)
        return found


_CAPPED: Mapping[type, tuple[str, str]] = {
    ArtifactsCap: ("the artifacts of this workspace", "wait until some expire, or ask for a higher limit"),
    UploadsCap: ("your uploads", "delete some, or wait until they expire"),
    StorageCap: ("this storage area", "delete keys first"),
}


def check_cap(held: int, cap: ArtifactsCap | UploadsCap | StorageCap) -> None:
    if held > cap.max_bytes:
        what, cure = _CAPPED[type(cap)]
        raise HostError(ErrorCode.PAYLOAD_TOO_LARGE, f"{what} would hold more than {cap.max_bytes} bytes; {cure}")


KEPT_FREE = 0.1
"""The part of a host that a workspace never fills where there are several, so that the next one finds room at once."""


def admits(busy: Mapping[str, int], workspace: str, capacity: int, *, several: bool) -> bool:
    """Return true if one more run of the workspace fits. `busy` counts the live runs of each workspace; `several`
    says that other workspaces use this host, now or later."""
    total = sum(busy.values())
    if total >= capacity:
        return False
    alone = len(busy) <= (workspace in busy)
    others = 0 if alone else sum(1 for name, count in busy.items() if count and name != workspace)
    share = capacity / (others + 1) if others else capacity * (1 - KEPT_FREE * several)
    return busy.get(workspace, 0) < max(1, share)


def next_in_line(waiting: Sequence[str], busy: Mapping[str, int]) -> str:
    """Of those that wait, the workspace with the fewest runs; of several, the one that waits longest."""
    return min(waiting, key=lambda workspace: busy.get(workspace, 0))


def next_after(workspaces: Sequence[str], last: str) -> str:
    """Of those that wait, in order of their names, the one behind the last that had its turn."""
    return min((name for name in workspaces if name > last), default=min(workspaces))
