"""Numbers for Prometheus. Labels are words of ours alone (statuses, actions, codes), so their number is bounded:
no user, thread, agent or tool ever becomes a label.

Counting is plain numbers, because every run passes here; the library is loaded by the first who asks for the page.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from paddock.rules.errors import ErrorCode
from paddock.rules.permissions import Grant
from paddock_sdk.protocol.host_calls import HOST_CALLS

if TYPE_CHECKING:
    from prometheus_client.core import Metric

RUN_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
CALL_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5, 30)
RESULTS = frozenset({"allowed", *(str(code) for code in ErrorCode)})
MAX_LIVE = 100_000
"""Runs whose start is remembered; beyond it a run is counted and not timed."""


@dataclass(frozen=True, slots=True)
class Now:
    """What is true at the moment of asking, and nobody counts."""

    runs: Callable[[], int]
    sessions: Callable[[], int]
    runners: Callable[[], Mapping[str, int]]
    store_healthy: Callable[[], bool]
    capacity: Callable[[], int]
    waiting: Callable[[], int]
    turned_away: Callable[[], int]
    hosts: Callable[[], int]
    bus_healthy: Callable[[], bool]
    came: Callable[[], Mapping[str, int]]


class _Times:
    """How often something took how long."""

    __slots__ = ("_bounds", "_counts", "_sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, seconds: float) -> None:
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self._sum += seconds

    def told(self) -> tuple[list[tuple[str, float]], float]:
        """How many took at most so long, for each bound, and the sum of all."""
        names = [*(str(float(bound)) for bound in self._bounds), "+Inf"]
        return [*zip(names, map(float, accumulate(self._counts)), strict=True)], self._sum


class Metrics:
    """An observer that counts, and the page that tells."""

    def __init__(self, version: str) -> None:
        self._version = version
        self._now: Now | None = None
        self._started: dict[str, float] = {}
        self._runs: Counter[tuple[str, ...]] = Counter()
        self._run_seconds = _Times(RUN_SECONDS)
        self._calls: Counter[tuple[str, ...]] = Counter()
        self._call_seconds: dict[str, _Times] = {}

    def watch(self, now: Now) -> None:
        """Also tell what is true at the moment of asking."""
        self._now = now

    def page(self) -> bytes:
        from prometheus_client import generate_latest

        return generate_latest(self)  # pyright: ignore[reportArgumentType] - whatever can collect is registry enough

    def collect(self) -> "Iterator[Metric]":
        yield _counter("paddock_runs", "Runs that ended.", ["status"], self._runs)
        yield _histogram("paddock_run_seconds", "From a run's dispatch to its end.", {(): self._run_seconds})
        yield _counter("paddock_host_calls", "Host calls of runners.", ["action", "result"], self._calls)
        times = {(action,): times for action, times in self._call_seconds.items()}
        yield _histogram("paddock_host_call_seconds", "How long host calls took.", times, ["action"])
        if self._now is not None:
            yield from _at_the_moment(self._now)
        yield _gauge("paddock_build", "Which host this is.", {(self._version,): 1}, ["version"])

    # --- what it is told

    def run_started(self, grant: Grant, at: float) -> None:
        if len(self._started) < MAX_LIVE:
            self._started[grant.scope.run_id] = at

    def run_ended(self, run_id: str, status: str, at: float) -> None:
        self._runs[status,] += 1
        started = self._started.pop(run_id, None)
        if started is not None:
            self._run_seconds.observe(max(0.0, at - started))

    def step(self, run_id: str, name: str, at: float, *, begins: bool) -> None:
        """Steps have names that runners make up; they are in the traces."""

    def host_call(self, run_id: str, action: str, resource: str, result: str, began: float, ended: float) -> None:  # noqa: ARG002 - told, and no label
        known = action if action in HOST_CALLS else "unknown"
        self._calls[known, result if result in RESULTS else "other"] += 1
        if (seconds := self._call_seconds.get(known)) is None:
            seconds = self._call_seconds[known] = _Times(CALL_SECONDS)
        seconds.observe(max(0.0, ended - began))


def _at_the_moment(now: Now) -> "Iterator[Metric]":
    yield _gauge("paddock_runs_in_flight", "Runs that have not ended.", {(): now.runs()})
    yield _gauge("paddock_sessions_loaded", "Conversations held in memory.", {(): now.sessions()})
    yield _gauge("paddock_store_healthy", "1 while the store can write.", {(): now.store_healthy()})
    yield _gauge("paddock_runs_capacity", "Runs this host takes at once.", {(): now.capacity()})
    yield _gauge("paddock_runs_waiting", "Requests that wait for room.", {(): now.waiting()})
    yield _counter("paddock_turned_away", "Told to try again: full.", [], {(): now.turned_away()})
    yield _gauge("paddock_hosts", "Hosts that share this store, with this one.", {(): now.hosts()})
    yield _gauge("paddock_bus_healthy", "1 while hosts can ring each other.", {(): now.bus_healthy()})
    came = {(way,): count for way, count in now.came().items()}
    yield _counter("paddock_followed", "Facts of other hosts that readers here got, by their way.", ["way"], came)
    states = {(state,): count for state, count in now.runners().items()}
    yield _gauge("paddock_runners", "Runners by the state of their process.", states, ["state"])


def _counter(name: str, says: str, labels: list[str], counts: Mapping[tuple[str, ...], int]) -> "Metric":
    from prometheus_client.core import CounterMetricFamily

    family = CounterMetricFamily(name, says, labels=labels)
    for values, count in counts.items():
        family.add_metric(values, count)
    return family


def _gauge(name: str, says: str, found: Mapping[tuple[str, ...], float], labels: Iterable[str] = ()) -> "Metric":
    from prometheus_client.core import GaugeMetricFamily

    family = GaugeMetricFamily(name, says, labels=list(labels))
    for values, value in found.items():
        family.add_metric(values, float(value))
    return family


def _histogram(name: str, says: str, found: Mapping[tuple[str, ...], _Times], labels: Iterable[str] = ()) -> "Metric":
    from prometheus_client.core import HistogramMetricFamily

    family = HistogramMetricFamily(name, says, labels=list(labels))
    for values, times in found.items():
        family.add_metric(values, *times.told())
    return family
