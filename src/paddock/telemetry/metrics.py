"""Numbers for Prometheus. Labels are words of ours alone (statuses, actions, codes), so their number is bounded:
no user, thread, agent or tool ever becomes a label.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from paddock.rules.errors import ErrorCode
from paddock.rules.permissions import Grant
from paddock_sdk.protocol.host_calls import HOST_CALLS

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


class Metrics:
    """An observer that counts, and the page that tells."""

    def __init__(self, version: str) -> None:
        self._registry = registry = CollectorRegistry()
        self._version = version
        self._started: dict[str, float] = {}
        self._runs = Counter("paddock_runs", "Runs that ended.", ["status"], registry=registry)
        self._run_seconds = Histogram(
            "paddock_run_seconds", "From a run's dispatch to its end.", buckets=RUN_SECONDS, registry=registry
        )
        self._calls = Counter("paddock_host_calls", "Host calls of runners.", ["action", "result"], registry=registry)
        self._call_seconds = Histogram(
            "paddock_host_call_seconds",
            "How long host calls took.",
            ["action"],
            buckets=CALL_SECONDS,
            registry=registry,
        )

    def watch(self, now: Now) -> None:
        """Also tell what is true at the moment of asking."""
        self._registry.register(_AtTheMoment(now, self._version))

    def page(self) -> bytes:
        return generate_latest(self._registry)

    # --- what it is told

    def run_started(self, grant: Grant, at: float) -> None:
        if len(self._started) < MAX_LIVE:
            self._started[grant.scope.run_id] = at

    def run_ended(self, run_id: str, status: str, at: float) -> None:
        self._runs.labels(status).inc()
        started = self._started.pop(run_id, None)
        if started is not None:
            self._run_seconds.observe(max(0.0, at - started))

    def step(self, run_id: str, name: str, at: float, *, begins: bool) -> None:
        """Steps have names that runners make up; they are in the traces."""

    def host_call(self, run_id: str, action: str, resource: str, result: str, began: float, ended: float) -> None:  # noqa: ARG002 - told, and no label
        known = action if action in HOST_CALLS else "unknown"
        self._calls.labels(known, result if result in RESULTS else "other").inc()
        self._call_seconds.labels(known).observe(max(0.0, ended - began))


class _AtTheMoment(Collector):
    def __init__(self, now: Now, version: str) -> None:
        self._now = now
        self._version = version

    def collect(self) -> Iterable[Metric]:
        yield _gauge("paddock_runs_in_flight", "Runs that have not ended.", self._now.runs())
        yield _gauge("paddock_sessions_loaded", "Conversations held in memory.", self._now.sessions())
        yield _gauge("paddock_store_healthy", "1 while the store can write.", self._now.store_healthy())
        yield _gauge("paddock_runs_capacity", "Runs this host takes at once.", self._now.capacity())
        yield _gauge("paddock_runs_waiting", "Requests that wait for room.", self._now.waiting())
        yield CounterMetricFamily("paddock_turned_away", "Told to try again: full.", value=self._now.turned_away())
        yield _gauge("paddock_hosts", "Hosts that share this store, with this one.", self._now.hosts())
        yield _gauge("paddock_bus_healthy", "1 while hosts can ring each other.", self._now.bus_healthy())
        runners = GaugeMetricFamily("paddock_runners", "Runners by the state of their process.", labels=["state"])
        for state, count in self._now.runners().items():
            runners.add_metric([state], count)
        yield runners
        build = GaugeMetricFamily("paddock_build", "Which host this is.", labels=["version"])
        build.add_metric([self._version], 1)
        yield build


def _gauge(name: str, says: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, says, value=float(value))
