"""How often one caller may call. A limit for keys and tokens; whoever is let in as this machine itself has none.

Bounded: callers that have not called for a while are forgotten, and begin with a full allowance again.
"""

from collections import OrderedDict
from collections.abc import Callable

from paddock.rules.access.limits import TokenBucket
from paddock.rules.errors import ErrorCode, HostError

MAX_CALLERS = 10_000
AT_ONCE = 2.0
"""Seconds' worth of calls that may come at once."""


class CallerLimits:
    """A bucket for each caller. `per_second` 0 lifts the limit."""

    def __init__(self, per_second: float, *, now: Callable[[], float]) -> None:
        self._per_second = per_second
        self._now = now
        self._buckets: OrderedDict[bytes, TokenBucket] = OrderedDict()

    def take(self, caller: bytes) -> None:
        """One call of this caller. Raises RATE_LIMITED with the time to wait."""
        if self._per_second <= 0:
            return
        wait = self._bucket(caller).take(self._now())
        if wait > 0:
            text = f"this key may call {self._per_second:g} times a second on average; wait and try again"
            raise HostError(ErrorCode.RATE_LIMITED, text, retryable=True, details={"retry_after": round(wait, 3)})

    def _bucket(self, caller: bytes) -> TokenBucket:
        found = self._buckets.get(caller)
        if found is None:
            found = TokenBucket.full(self._per_second, self._per_second * AT_ONCE, self._now())
            self._buckets[caller] = found
            if len(self._buckets) > MAX_CALLERS:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(caller)
        return found
