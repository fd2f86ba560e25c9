"""What the load generator is asked to do and what it answers; the only words between it and the rest of the bench."""

from collections.abc import Sequence

import msgspec

DRAIN_SECONDS = 20.0
RUNS_SECONDS = 60.0


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One burst of load. It ends after `seconds`, or after `runs` when that is given; nothing outlasts `limit`."""

    door: str = ""
    port: int = 0
    text: str
    concurrency: int
    seconds: float = 0.0
    runs: int = 0
    rate: float = 0.0
    """Runs per second that arrive on their own clock (exponential gaps); 0 = each worker asks again when answered."""
    growth: bool = False
    """One worker, two threads, turn by turn as `bench.growth` says, instead of a new thread for every run."""

    @property
    def limit(self) -> float:
        """Seconds after which what is still under way counts as failed."""
        return self.seconds + DRAIN_SECONDS if self.seconds else RUNS_SECONDS

    def at(self, door: str, port: int) -> "Job":
        return msgspec.structs.replace(self, door=door, port=port)


class Spread(msgspec.Struct, frozen=True):
    """Milliseconds."""

    p50: float
    p99: float


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a job. `problems` holds the first few errors in words; `errors` counts them all."""

    runs: int
    deltas: int
    seconds: float
    errors: int
    problems: Sequence[str]
    first_event: Spread
    first_text: Spread
    whole_run: Spread
    turns_ms: Sequence[float] = ()
    """Of a growth job: every turn's time, in order."""

    @property
    def runs_per_second(self) -> float:
        return self.runs / self.seconds if self.seconds else 0.0

    @property
    def deltas_per_second(self) -> float:
        return self.deltas / self.seconds if self.seconds else 0.0


def spread_of(seconds: Sequence[float]) -> Spread:
    """The middle and the slow end; zeros when nothing was measured."""
    if not seconds:
        return Spread(0.0, 0.0)
    ordered = sorted(seconds)
    return Spread(*(round(1000 * ordered[int(share * (len(ordered) - 1))], 3) for share in (0.5, 0.99)))
