"""`python -m bench.cluster`: what it costs to be one of several hosts, beside the embedded default.

Short runs at the AG-UI door, as in the other benches, on the embedded default, on one host with PostgreSQL (which syncs
to its disk) and NATS, and on three such hosts, in turns. What three can do is compared with what one can: each has 48
connections, enough to keep it busy, and as many runs. Counted is the CPU of the hosts' own processes; that of the
engines is shown beside it. Shown without a target: the load of one host spread over three, a heavy one and a light
one. There each host sees a third of the runs, so fewer share a commit, a turn of the loop and the processor's cache,
and a run costs more. Then a run that speaks slowly, followed at its owner and at another host by one reader: how much
later does each frame come.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter
from uuid import uuid4

import httpx
import psutil

from bench.jobs import Job, Outcome
from bench.load import LoadGenerator, load_generator
from bench.paddock import paddock_launch
from bench.probe import Probe, probing
from bench.scripts import SHORT, drip
from bench.servers import BenchError, Server, cpu_of, serving
from bench.verdicts import Line, shown
from nats_server import NatsServer
from postgres_server import Server as Postgres
from postgres_server import new_server

HOSTS = 3
CONNECTIONS = 48
HEAVY, LIGHT = 32 * HOSTS, 5 * HOSTS
RUNS = 1200
FRAMES, GAP_MS = 200, 10
COSTS, SLOWER, DEARER, LATER_MS = 1.5, 0.8, 1.25, 5.0


@dataclass
class Seen:
    """One round: milliseconds of CPU per run, and runs per second."""

    hosts_ms: float
    engines_ms: float
    rate: float
    probe_us: float
    """What a fixed piece of work took meanwhile: how slow the machine was."""


@dataclass
class Engines:
    postgres: Postgres
    nats: NatsServer
    store: str

    def cpu(self) -> float:
        """Seconds that the engines have used. A connection's process that ended is counted by the one that began it."""
        found = [psutil.Process(self.postgres.pid)]
        found += found[0].children()
        assert self.nats.process is not None
        return sum(sum(one.cpu_times()[:4]) for one in [*found, psutil.Process(self.nats.process.pid)])


@dataclass
class System:
    servers: Sequence[Server]
    generators: Sequence[LoadGenerator]
    engines: Engines | None = None
    connections: int = CONNECTIONS
    """To each host."""
    runs: int = RUNS
    """At each host, in a round."""
    probe: Probe | None = None
    rounds: list[Seen] = field(default_factory=list[Seen])

    def go(self) -> None:
        """A round: all hosts at the same time."""
        hosts, engines = [cpu_of(one.process) for one in self.servers], self.engines.cpu() if self.engines else 0.0
        if self.probe is not None:
            self.probe.microseconds()
        began = perf_counter()
        with ThreadPoolExecutor(len(self.servers)) as pool:
            do = partial(_do, runs=self.runs, connections=self.connections)
            done = list(pool.map(do, self.servers, self.generators))
        seconds, count = perf_counter() - began, sum(one.runs for one in done)
        used = sum(cpu_of(one.process) for one in self.servers) - sum(hosts)
        beside = self.engines.cpu() - engines if self.engines else 0.0
        slow = self.probe.microseconds() if self.probe is not None else 0.0
        self.rounds.append(Seen(used / count * 1e3, beside / count * 1e3, count / seconds, slow))


def _do(server: Server, generator: LoadGenerator, runs: int, connections: int) -> Outcome:
    job = Job(text=SHORT, concurrency=connections, runs=runs).at("ag-ui", server.port)
    outcome = generator.do(job)
    if outcome.errors:
        raise BenchError(f"{outcome.errors} runs were not right, such as: {outcome.problems[:1]}")
    return outcome


@contextmanager
def engines() -> Generator[Engines]:
    postgres, nats = new_server(fsync="on"), NatsServer().start()
    try:
        yield Engines(postgres, nats, postgres.new_database())
    finally:
        nats.kill()
        postgres.let_go()


def system(stack: ExitStack, work: Path, count: int, beside: Engines | None) -> System:
    """So many hosts, each with a directory and a load generator of its own."""
    servers = list[Server]()
    for number in range(count):
        place = work / f"{count if beside else 'alone'}-{number}"
        place.mkdir()
        more = {"--store": beside.store, "--config": _bus(place, beside)} if beside else {}
        servers.append(stack.enter_context(serving(paddock_launch(place, **more), place / "log")))
    return System(servers, [stack.enter_context(load_generator()) for _ in servers], beside)


def _bus(place: Path, beside: Engines) -> str:
    file = place / "paddock.toml"
    file.write_text(f'bus = "{beside.nats.url}"\n')
    return str(file)


def measure(work: Path, rounds: int) -> tuple[Mapping[str, System], list[float]]:
    with ExitStack() as stack:
        one, three = stack.enter_context(engines()), stack.enter_context(engines())
        systems = {
            "alone": system(stack, work, 1, None),
            "one": system(stack, work, 1, one),
            "three": system(stack, work, HOSTS, three),
        }
        single, many = systems["one"], systems["three"]
        for load in (HEAVY, LIGHT):
            systems[f"one of {load}"] = System(single.servers, single.generators, one, load)
            systems[f"three of {load}"] = System(many.servers, many.generators, three, load // HOSTS, RUNS // HOSTS)
        probe = stack.enter_context(probing())
        for each in systems.values():
            each.probe = probe
        for each in systems.values():  # bytecode, runners, connections
            each.go()
            each.rounds.clear()
        for _ in range(rounds):
            for each in systems.values():
                each.go()
        owner, other = systems["three"].servers[:2]
        return systems, [asyncio.run(lateness(owner.port, other.port)) for _ in range(rounds)]


# --- a frame at another host ---------------------------------------------------------------------------------------


async def lateness(owner: int, other: int) -> float:
    """Milliseconds by which the frames of one run come later at another host than at its owner, the middle one."""
    body = {
        "threadId": str(uuid4()),
        "runId": uuid4().hex,
        "messages": [{"id": "m", "role": "user", "content": drip(FRAMES, GAP_MS)}],
        "forwardedProps": {"runtime_mode": "chat"},
    }
    async with httpx.AsyncClient(timeout=60) as client:
        accepted = await client.post(f"http://127.0.0.1:{owner}/api/v1/agent/runs", json=body)
        task = accepted.raise_for_status().json()["taskId"]
        here, there = await asyncio.gather(*(_arrivals(client, port, task) for port in (owner, other)))
    both = sorted(here.keys() & there.keys())[10:]  # the first ones wait for the reader and not the reader for them
    if len(both) < FRAMES // 4:
        raise BenchError(f"only {len(both)} frames were seen at both hosts")
    return statistics.median((there[cursor] - here[cursor]) * 1e3 for cursor in both)


async def _arrivals(client: httpx.AsyncClient, port: int, task: str) -> dict[tuple[int, ...], float]:
    """When each frame of a run came, by its cursor."""
    seen = dict[tuple[int, ...], float]()
    async with client.stream("GET", f"http://127.0.0.1:{port}/api/v1/agent/runs/{task}/events") as answer:
        async for line in answer.aiter_lines():
            if line.startswith("id: "):
                seen[tuple(map(int, line[4:].split(".")))] = perf_counter()
    return seen


# --- what is said of it --------------------------------------------------------------------------------------------


def lines_of(systems: Mapping[str, System], late: Sequence[float]) -> list[Line]:
    alone, one, three, heavy, shared, light, little = (each.rounds for each in systems.values())
    costs, later = _over(alone, one), _middle(late)
    return [
        Line("a short run on the embedded default, CPU of the host", _ms(alone)),
        Line("on PostgreSQL and NATS, CPU of the host", _ms(one)),
        Line("  its engines beside it", f"{_middle([seen.engines_ms for seen in one]):.2f} ms"),
        Line("  over the embedded default", f"{costs:.2f}", f"<= {COSTS}", costs <= COSTS),
        *_of_three(f"on {HOSTS} such hosts, each as busy with {CONNECTIONS} connections", one, three),
        Line(f"on one host with {HEAVY} connections, CPU of the host", _ms(heavy)),
        *_beside(f"on {HOSTS} such hosts, the same {HEAVY} connections spread over them", heavy, shared),
        Line(f"on one host with {LIGHT} connections, CPU of the host", _ms(light)),
        *_beside(f"on {HOSTS} such hosts, the same {LIGHT} connections spread over them", light, little),
        Line("a live frame through another host, p50", f"{later:.2f} ms later", f"<= {LATER_MS} ms", later <= LATER_MS),
    ]


def _of_three(words: str, one: Sequence[Seen], three: Sequence[Seen]) -> list[Line]:
    dearer = _over(one, three)
    slower = _middle([b.probe_us / a.probe_us for a, b in zip(one, three, strict=True)])
    rate = _middle([b.rate / a.rate for a, b in zip(one, three, strict=True)])
    return [
        Line(f"{words}, CPU of all", _ms(three)),
        Line("  over one host", f"{dearer:.2f}", f"<= {DEARER}", dearer <= DEARER),
        Line("  a fixed piece of work beside it, over the same beside one host", f"{slower:.2f}"),
        Line("  runs per second over one host", f"{rate:.2f}", f">= {SLOWER}", rate >= SLOWER),
    ]


def _beside(words: str, one: Sequence[Seen], three: Sequence[Seen]) -> list[Line]:
    return [Line(line.name, line.value) for line in _of_three(words, one, three)]


def _over(base: Sequence[Seen], other: Sequence[Seen]) -> float:
    return _middle([b.hosts_ms / a.hosts_ms for a, b in zip(base, other, strict=True)])


def _ms(rounds: Sequence[Seen]) -> str:
    return f"{_middle([seen.hosts_ms for seen in rounds]):.2f} ms, {_middle([seen.rate for seen in rounds]):.0f} /s"


def _middle(values: Sequence[float]) -> float:
    return statistics.median(values)


def run(*, quick: bool, directory: Path | None = None) -> None:
    with tempfile.TemporaryDirectory(prefix="paddock-bench-", dir=directory) as work:
        print(shown(lines_of(*measure(Path(work), 3 if quick else 9))))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.cluster", description=__doc__)
    parser.add_argument("--quick", action="store_true")
    run(quick=parser.parse_args().quick)
    return 0


if __name__ == "__main__":
    sys.exit(main())
