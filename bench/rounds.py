"""The measuring itself: bursts of load in rounds that interleave the systems, so that noise hits them alike.

Knows what to ask and whom; what the numbers mean and what is good enough is `report.py`'s business.
"""

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import msgspec

from bench import growth, scripts
from bench.jobs import Job, Outcome
from bench.load import LoadGenerator
from bench.servers import BenchError, Server, Usage

CONCURRENCIES = (1, 16, 64)
LONG = scripts.stream(200)
SETTLE_SECONDS = 1.0
THREADS = 2000
LOADED_AT = 16
"""The concurrency whose rate, halved, is the load at which first events are measured."""
HALF_LOAD_CONNECTIONS = 64
"""Enough that an arrival hardly ever waits for a connection; if it does, the wait is counted."""


class Sample(msgspec.Struct, frozen=True):
    """One burst on one system, and the CPU its process tree spent per run."""

    outcome: Outcome
    cpu_ms_per_run: float


class Memory(msgspec.Struct, frozen=True):
    """Bytes of the server alone and of its tree: idle, and after 1,000 and 2,000 threads."""

    idle: Usage
    half: Usage
    full: Usage


Round = Mapping[str, Sample]
"""What each door answered in one round."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How long to measure."""

    rounds: int
    seconds: float
    growth_rounds: int


FULL = Plan(rounds=5, seconds=3.0, growth_rounds=7)
QUICK = Plan(rounds=3, seconds=0.7, growth_rounds=3)


@dataclass(slots=True)
class Bench:
    """The systems under load, by door; `measured`, `memory` and `problems` collect what was seen."""

    plan: Plan
    load: LoadGenerator
    servers: Mapping[str, Server]
    measured: dict[str, list[Round]] = field(default_factory=dict)
    memory: dict[str, Memory] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    errors: int = 0

    def warm(self) -> None:
        """A few runs through every door, so that no system is measured cold; one that fails now is not loaded."""
        for door in self.servers:
            for text in (scripts.SHORT, LONG):
                self.burst(door, Job(text=text, concurrency=4, runs=20))
        if self.errors:
            raise BenchError(f"Runs fail before any load. {self.problems[0]}")

    def measure_memory(self) -> None:
        """Must come first, on fresh processes: what was once used is seldom given back."""
        say("memory")
        threads = Job(text=scripts.SHORT, concurrency=LOADED_AT, runs=THREADS // 2)
        for door in self._systems():
            sizes = [self._settled(door)]
            for _ in range(2):
                self.burst(door, threads)
                sizes.append(self._settled(door))
            self.memory[door] = Memory(*sizes)

    def measure_short(self) -> None:
        """Runs per second, through every door."""
        for concurrency in CONCURRENCIES:
            self._rounds(f"short@{concurrency}", list(self.servers), self._timed(scripts.SHORT, concurrency))

    def measure_deltas(self) -> None:
        """Deltas per second, 200 to a run."""
        for concurrency in CONCURRENCIES:
            self._rounds(f"deltas@{concurrency}", self._systems(), self._timed(LONG, concurrency))

    def measure_first(self) -> None:
        """First event alone, and when both systems carry half of what the slower one can carry just then."""
        self._rounds("first@1", [door for door in self.servers if door != "pair"], self._timed(scripts.SHORT, 1))
        say("first@half")
        for _ in range(self.plan.rounds):
            self._round("first@half", self._systems(), self._half_load())

    def measure_growth(self) -> None:
        """One thread of 500 turns, its last turns beside a young thread's first."""
        say("growth")
        for _ in range(self.plan.growth_rounds):
            turns = Job(text=scripts.SHORT, concurrency=1, runs=growth.RUNS, growth=True)
            self._round("growth", self._systems(), turns)

    def _timed(self, text: str, concurrency: int, rate: float = 0.0) -> Job:
        return Job(text=text, concurrency=concurrency, seconds=self.plan.seconds, rate=rate)

    def _rounds(self, name: str, doors: list[str], job: Job) -> None:
        say(name)
        for _ in range(self.plan.rounds):
            self._round(name, doors, job)

    def _round(self, name: str, doors: list[str], job: Job) -> None:
        rounds = self.measured.setdefault(name, [])
        shift = len(rounds) % len(doors)  # nobody is always first
        rounds.append({door: self.burst(door, job) for door in doors[shift:] + doors[:shift]})

    def burst(self, door: str, job: Job) -> Sample:
        """One job for the server of this door, with the CPU that its processes spent on it."""
        server = self.servers[door]
        before = server.usage().cpu_seconds
        outcome = self.load.do(job.at(door, server.port))
        spent = server.usage().cpu_seconds - before
        self.errors += outcome.errors
        self.problems += [f"{door}, {job.text}, {job.concurrency} at once: {problem}" for problem in outcome.problems]
        return Sample(outcome, 1000 * spent / max(1, outcome.runs))

    def _settled(self, door: str) -> Usage:
        time.sleep(SETTLE_SECONDS)
        return self.servers[door].usage()

    def _half_load(self) -> Job:
        """Asked anew each round: on a shared machine yesterday's half may be today's too much."""
        full = self._timed(scripts.SHORT, LOADED_AT)
        slower = min(self.burst(door, full).outcome.runs_per_second for door in self._systems())
        return self._timed(scripts.SHORT, HALF_LOAD_CONNECTIONS, rate=max(1.0, slower / 2))

    def _systems(self) -> list[str]:
        """The floor and the host, by one door each; the pair and the bare floor are shown for short runs."""
        return [door for door in self.servers if door not in ("pair", "bare")]


SECTIONS: Mapping[str, Callable[[Bench], None]] = {
    "memory": Bench.measure_memory,
    "short": Bench.measure_short,
    "deltas": Bench.measure_deltas,
    "first": Bench.measure_first,
    "growth": Bench.measure_growth,
}


def say(what: str) -> None:
    """Progress, beside the report."""
    print(f"  {what} ...", file=sys.stderr, flush=True)
