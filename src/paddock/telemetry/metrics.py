"""Numbers for Prometheus. Labels are words of ours alone (statuses, actions, codes), so their number is bounded:
no user, thread, agent or tool ever becomes a label.

Counting is plain numbers, because every run passes here; the library is loaded by the first who asks for the page.
"""

from bisect import bisect_left
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from types import SimpleNamespace
from typing import TYPE_CHECKING

from paddock.ports.runners import Observer
from paddock.rules.access.permissions import Grant
from paddock.rules.errors import ErrorCode
from paddock_sdk.protocol.host_calls import HOST_CALLS

if TYPE_CHECKING:
    from prometheus_client.core import Metric

RUN_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
CALL_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5, 30)
RESULTS = frozenset({"allowed", *(str(code) for code in ErrorCode)})
MAX_LIVE = 100_000
"""Runs whose start is remembered; beyond it a run is counted, for nobody, and not timed."""
MAX_WORKSPACES = 1000
"""Workspaces with numbers of their own; those that were quiet for longest are only counted in the host's."""
NOBODY = ""


@dataclass(frozen=True, slots=True)
class Now:
    """Gauges that are asked for when the page is made."""

    runs: Callable[[str | None], int]
    """Of a workspace, or of all."""
    sessions: Callable[[], int]
    runners: Callable[[], Mapping[str, int]]
    store_healthy: Callable[[], bool]
    capacity: Callable[[], int]
    waiting: Callable[[str | None], int]
    turned_away: Callable[[], int]
    hosts: Callable[[], int]
    bus_healthy: Callable[[], bool]
    came: Callable[[], Mapping[str, int]]
    stalls: Callable[[], int]
    worst_stall: Callable[[], float]


class _Times:
    __slots__ = ("_bounds", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self.counts: list[int] = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, seconds: float) -> None:
        self.counts[bisect_left(self._bounds, seconds)] += 1
        self.sum += seconds

    def cumulative(self) -> tuple[list[tuple[str, float]], float]:
        names = [*(str(float(bound)) for bound in self._bounds), "+Inf"]
        return [*zip(names, map(float, accumulate(self.counts)), strict=True)], self.sum

    def add(self, other: "_Times") -> None:
        self.counts = [one + more for one, more in zip(self.counts, other.counts, strict=True)]
        self.sum += other.sum


class _Counts:
    """Counters of one workspace, or of several together."""

    __slots__ = ("call_seconds", "calls", "run_seconds", "runs")

    def __init__(self) -> None:
        self.runs: Counter[tuple[str, ...]] = Counter()
        self.run_seconds = _Times(RUN_SECONDS)
        self.calls: Counter[tuple[str, ...]] = Counter()
        self.call_seconds: dict[str, _Times] = {}

    def call(self, action: str, result: str, seconds: float) -> None:
        self.calls[action, result] += 1
        self._times_of(action).observe(seconds)

    def add(self, other: "_Counts") -> None:
        self.runs.update(other.runs)
        self.run_seconds.add(other.run_seconds)
        self.calls.update(other.calls)
        for action, times in other.call_seconds.items():
            self._times_of(action).add(times)

    def _times_of(self, action: str) -> _Times:
        if (seconds := self.call_seconds.get(action)) is None:
            seconds = self.call_seconds[action] = _Times(CALL_SECONDS)
        return seconds

    def collect(self) -> "Iterator[Metric]":
        yield _counter("paddock_runs", "Runs that ended.", self.runs, ["status"])
        yield _histogram("paddock_run_seconds", "From a run's dispatch to its end.", {(): self.run_seconds})
        yield _counter("paddock_host_calls", "Host calls of runners.", self.calls, ["action", "result"])
        times = {(action,): times for action, times in self.call_seconds.items()}
        yield _histogram("paddock_host_call_seconds", "How long host calls took.", times, ["action"])


class Metrics:
    """An observer that counts by workspace, and the pages of numbers: one of the host, one of each workspace."""

    def __init__(self, version: str) -> None:
        self._version = version
        self._started: dict[str, tuple[str, float]] = {}
        """Live runs: their workspace, and when they began."""
        self._counted: OrderedDict[str, _Counts] = OrderedDict()
        self._quiet = _Counts()
        """Of workspaces that have no numbers of their own any more."""

    def page(self, workspace: str | None = None, *, now: Now | None = None) -> bytes:
        """Return the page of one workspace, or of the host when none is named; with gauges if `now` is given."""
        from prometheus_client import generate_latest

        collector = SimpleNamespace(collect=partial(self.collect, workspace, now))
        return generate_latest(collector)  # pyright: ignore[reportArgumentType] - all it needs

    def collect(self, workspace: str | None, now: Now | None) -> "Iterator[Metric]":
        yield from self._counts(workspace).collect()
        if now is not None:
            yield from _of_runs(now, workspace)
            yield from _of_the_host(now) if workspace is None else ()
        yield _gauge("paddock_build", "Which host this is.", {(self._version,): 1}, ["version"])

    def _counts(self, workspace: str | None) -> _Counts:
        if workspace is not None:
            return self._counted.get(workspace) or _Counts()
        all_of_them = _Counts()
        for counts in (self._quiet, *self._counted.values()):
            all_of_them.add(counts)
        return all_of_them

    def _of(self, workspace: str) -> _Counts:
        counts = self._counted.get(workspace)
        if counts is None:
            counts = self._counted[workspace] = _Counts()
            if len(self._counted) > MAX_WORKSPACES:
                self._quiet.add(self._counted.popitem(last=False)[1])
        self._counted.move_to_end(workspace)
        return counts

    def run_started(self, grant: Grant, at: float) -> None:
        if len(self._started) < MAX_LIVE:
            self._started[grant.scope.run_id] = grant.scope.workspace_id, at

    def run_ended(self, run_id: str, status: str, at: float) -> None:
        workspace, started = self._started.pop(run_id, (NOBODY, at))
        counts = self._of(workspace)
        counts.runs[status,] += 1
        if workspace:
            counts.run_seconds.observe(max(0.0, at - started))

    def step(self, run_id: str, name: str, at: float, *, begins: bool) -> None:
        """Steps have names that runners make up; they are in the traces."""

    def host_call(self, run_id: str, action: str, resource: str, result: str, began: float, ended: float) -> None:  # noqa: ARG002 - the resource is no label
        known = action if action in HOST_CALLS else "unknown"
        workspace, _ = self._started.get(run_id, (NOBODY, 0.0))
        self._of(workspace).call(known, result if result in RESULTS else "other", max(0.0, ended - began))


class Together:
    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = observers

    def run_started(self, grant: Grant, at: float) -> None:
        for one in self._observers:
            one.run_started(grant, at)

    def run_ended(self, run_id: str, status: str, at: float) -> None:
        for one in self._observers:
            one.run_ended(run_id, status, at)

    def step(self, run_id: str, name: str, at: float, *, begins: bool) -> None:
        for one in self._observers:
            one.step(run_id, name, at, begins=begins)

    def host_call(self, run_id: str, action: str, resource: str, result: str, began: float, ended: float) -> None:
        for one in self._observers:
            one.host_call(run_id, action, resource, result, began, ended)


def _of_runs(now: Now, workspace: str | None) -> "Iterator[Metric]":
    yield _gauge("paddock_runs_in_flight", "Runs that have not ended.", {(): now.runs(workspace)})
    yield _gauge("paddock_runs_waiting", "Requests that wait for room.", {(): now.waiting(workspace)})


def _of_the_host(now: Now) -> "Iterator[Metric]":
    for name, says, value in (
        ("paddock_sessions_loaded", "Conversations held in memory.", now.sessions),
        ("paddock_store_healthy", "1 while the store can write.", now.store_healthy),
        ("paddock_runs_capacity", "Runs this host takes at once.", now.capacity),
        ("paddock_hosts", "Hosts that share this store, with this one.", now.hosts),
        ("paddock_bus_healthy", "1 while hosts can ring each other.", now.bus_healthy),
        ("paddock_loop_stall_worst_seconds", "The longest stall of the loop, in CPU time.", now.worst_stall),
    ):
        yield _gauge(name, says, {(): value()})
    yield _counter("paddock_turned_away", "Told to try again: full.", {(): now.turned_away()})
    yield _counter("paddock_loop_stalls", "Times one piece of work held up all others.", {(): now.stalls()})
    came = {(way,): count for way, count in now.came().items()}
    yield _counter("paddock_followed", "Facts of other hosts that readers here got, by their way.", came, ["way"])
    states = {(state,): count for state, count in now.runners().items()}
    yield _gauge("paddock_runners", "Runners by the state of their process.", states, ["state"])


def _family(
    kind: str, name: str, says: str, found: Mapping[tuple[str, ...], "float | _Times"], labels: Iterable[str] = ()
) -> "Metric":
    from prometheus_client import core

    family = getattr(core, f"{kind}MetricFamily")(name, says, labels=list(labels))
    for values, number in found.items():
        family.add_metric(values, *(number.cumulative() if isinstance(number, _Times) else (float(number),)))
    return family


_counter, _gauge, _histogram = (partial(_family, kind) for kind in ("Counter", "Gauge", "Histogram"))
