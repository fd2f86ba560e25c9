"""`python -m bench.host_calls`: what the gate costs. Round trips as a runner sees them, and writes per second.

Round trip: a real runner process asks through the SDK, an echo and `state.get` in turn on one connection; the echo is
answered by the connection's handler at once, without the gate. Writes: 32 producers ask the gate for `state.set`, each
answered after its commit; beside it the same writer stores the same rows without the gate. Rounds alternate, and a
ratio is taken within a round. CPU per write moves least when neighbours work.
"""

import argparse
import asyncio
import itertools
import json
import shutil
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import uvloop

from bench.report import Figure, Target, table_of
from bench.stores import address
from paddock.host.agents.agents import Agents
from paddock.host.agents.file import in_force, read_agents
from paddock.host.audit import Audit
from paddock.host.calls.artifacts import Artifacts
from paddock.host.calls.host_calls import HostCalls
from paddock.host.calls.state import RunnerState
from paddock.host.conversations.inbox import Inbox
from paddock.host.outage import Outage
from paddock.host.people.principals import DEV
from paddock.host.people.users import Users
from paddock.host.runs.authority import Authority, Granting
from paddock.host.runs.briefing import Briefing
from paddock.host.runs.live_run import LiveRun, ResultHandling
from paddock.host.runs.live_runs import LiveRuns
from paddock.host.runs.runs import Runs
from paddock.host.session.arrivals import NewRun
from paddock.host.session.manager import SessionManager
from paddock.host.session.memory import SessionLoops
from paddock.host.session.services import SessionServices
from paddock.host.session.sessions import Sessions
from paddock.host.session.word_quota import Words
from paddock.host.streams.tails import Tails
from paddock.ports import Caller, Store
from paddock.rules.access.limits import Rates
from paddock.rules.access.permissions import state_key
from paddock.rules.rows.rows import AuditRow, StateRow
from paddock.runners.gateway import Gateway
from paddock.runners.installed.catalog import Catalog
from paddock.runners.processes.isolation import Confinement
from paddock.runners.processes.shared import RunnerGate
from paddock.settings import EMBEDDED
from paddock.storage.chosen import store_at
from paddock.storage.files.local import FileBlobs

PRODUCERS = 32
AGENTS = 'agents: {calls: {runner: "plugin:paddock/bench-calls/default", deadline_seconds: 3600}}'
ECHO = msgspec.Raw(b'{"items":[]}')
TRIP_TARGET = Target(at_most=3.0)
SHARE_TARGET = Target(at_least=0.3)
RATES = {True: 5_000.0, False: 4_000.0}
"""Authorised writes per second: embedded, and on PostgreSQL."""


@dataclass
class Bench:
    """The parts of a host that a host call passes, over a real store, with the rate lifted."""

    store: Store
    calls: HostCalls
    runs: Runs
    inbox: Inbox
    tails: Tails
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def say(self, text: str) -> tuple[str, str]:
        new = NewRun(DEV, str(uuid.uuid4()), uuid.uuid4().hex, b"", {"id": "m", "content": text}, text)
        accepted = await self.inbox.accept(new)
        return accepted.session_id, accepted.run_id

    async def ask(self, text: str) -> Any:
        """One run of the bench runner, and the JSON it answered with."""
        thread, run_id = await self.say(text)
        follower = self.tails.follow(thread, run_id, 0)
        async with asyncio.timeout(300):
            while True:
                for entry in await follower.next(60):
                    if entry.fact.kind == "AGENT_OUTPUT:MESSAGE":
                        follower.close()
                        return json.loads(entry.fact.read_payload()["data"]["message"]["content"])
                    if entry.fact.kind.startswith("ERROR"):
                        raise SystemExit(f"the bench runner failed: {entry.fact.read_payload()}")

    async def held(self) -> LiveRun:
        """A run that is going on and does nothing."""
        _, run_id = await self.say("hold")
        async with asyncio.timeout(30):
            while (run := self.runs.live.find(run_id)) is None or run.connection_id is None:
                await asyncio.sleep(0.01)
        return run


@asynccontextmanager
async def bench_in(work: Path, at: str) -> AsyncGenerator[Bench]:
    plugins = work / "plugins"
    ours = Path(__file__).parent / "call_runner"
    shutil.copytree(ours, plugins / "calls", ignore=shutil.ignore_patterns("__pycache__"))
    agents: Agents = in_force(read_agents(AGENTS, "bench"), 100)
    store = store_at(at, work / "data")
    tasks: set[asyncio.Task[None]] = set()

    def spawn(job: Any) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(job)
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        return task

    loops, live, outage = SessionLoops(), LiveRuns(), Outage(store)
    tails, audit = Tails(store, None, loops.works_on), Audit(store, spawn)
    room = RunnerState(store).work
    calls = HostCalls(
        work=room,
        live=live,
        outage=outage,
        records=store,
        audit=audit,
        clock=time.time,
        rates=Rates.of_a_run(0),
    )

    async def on_call(caller: Caller, method: str, params: Any, size: int) -> Any:
        return ECHO if method == "steering.pull" else await calls.on_wire(caller, method, params, size)

    catalog = Catalog.load(installed=work / "none", further=[plugins])
    gateway = Gateway(catalog, Confinement(work / "homes", uuid.uuid4().hex), RunnerGate(on_call), host_version="bench")
    handling = ResultHandling(Artifacts(store, FileBlobs(work / "blobs"), clock=time.time), time.time, spawn)
    authority = Authority(gateway=gateway, agents=agents, offered=calls.offered)
    runs = Runs(
        gateway=gateway,
        granting=Granting(authority=authority, agents=agents, live=live, handling=handling, deadline_seconds=3600),
        briefing=Briefing(store, outage, host_version="bench"),
        live=live,
        handling=handling,
    )
    services = SessionServices(
        log=store,
        outage=outage,
        tails=tails,
        words=Words(store, spawn=spawn),
        audit=audit,
        authorise=runs.granting.authorise,
        performer=runs,
        manager=SessionManager(records=store, agents=agents, readiness=runs.authority, clock=time.time, spawn=spawn),
        agents=agents,
        clock=time.time,
        spawn=spawn,
    )
    sessions = Sessions(store, loops, services)
    inbox = Inbox(
        sessions=sessions, runs=runs, agents=agents, records=store, clock=time.time, users=Users(store, clock=time.time)
    )
    await store.open()
    await gateway.start()
    try:
        yield Bench(store, calls, runs, inbox, tails, tasks)
    finally:
        await gateway.stop()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await store.close()


# --- writes ----------------------------------------------------------------------------------------------------------


async def per_second(write: Callable[[int, int], Awaitable[object]], seconds: float) -> tuple[float, float]:
    """Writes that 32 producers get done in a second, each waiting for its own before the next, and CPU us for each."""
    end = time.perf_counter() + seconds
    done = 0

    async def produce(producer: int) -> None:
        nonlocal done
        for index in itertools.count():
            if time.perf_counter() >= end:
                return
            await write(producer, index)
            done += 1

    start, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(produce(number) for number in range(PRODUCERS)))
    return done / (time.perf_counter() - start), (time.process_time() - cpu) / done * 1e6


def through_the_gate(bench: Bench, held: Sequence[LiveRun]) -> Callable[[int, int], Awaitable[object]]:
    callers = [Caller("paddock/bench-calls", str(run.connection_id)) for run in held]

    def write(producer: int, index: int) -> Awaitable[object]:
        params = {"run_id": held[producer].run_id, "scope": "conversation", "key": "k", "value": {"n": index}}
        return bench.calls.on_wire(callers[producer], "state.set", params, 150)

    return write


def past_the_gate(bench: Bench, held: Sequence[LiveRun]) -> Callable[[int, int], Awaitable[object]]:
    """The same rows to the same writer."""
    keys = [str(state_key("conversation", run.grant)) for run in held]

    def write(producer: int, index: int) -> Awaitable[object]:
        grant, now = held[producer].grant, time.time()
        row = AuditRow(
            time=now,
            workspace_id=grant.scope.workspace_id,
            actor="plugin:paddock/bench-calls",
            action="state.set",
            resource="k",
            scope="conversation",
            result="allowed",
            reason="in the grant of the run",
            run_id=held[producer].run_id,
            runner_id=grant.runner_id,
            session_id=grant.scope.session_id,
        )
        value = msgspec.json.encode({"n": index})
        return bench.store.write([StateRow(keys[producer], "k", value, now), row])

    return write


async def measure(quick: bool, work: Path, at: str) -> Mapping[str, Any]:
    async with bench_in(work, at) as bench:
        await bench.ask("round 50")
        trips = [await bench.ask(f"round {200 if quick else 1000}") for _ in range(3)]
        held = [await bench.held() for _ in range(PRODUCERS)]
        gated, bare = through_the_gate(bench, held), past_the_gate(bench, held)
        seconds = 1.0 if quick else 3.0
        rounds = []
        for number in range(3 if quick else 5):
            order = [("gate", gated), ("bare", bare)]
            rounds.append({name: await per_second(way, seconds) for name, way in order[:: (-1) ** number]})
        wire = await bench.ask(f"write {2000 if quick else 10_000} {PRODUCERS}")
    rate = wire["writes"] / wire["seconds"]
    return {"trips": trips, "rounds": rounds, "wire": rate, "target": RATES[at == EMBEDDED]}


def figures_of(found: Mapping[str, Any], name: str) -> list[Figure]:
    """What was found, with the targets; `name` is that of the store."""
    p50 = [{name: statistics.median(times) for name, times in trip.items()} for trip in found["trips"]]
    echo, get = (statistics.median(trip[name] for trip in p50) * 1e6 for name in ("echo", "state.get"))
    ratio = statistics.median(trip["state.get"] / trip["echo"] for trip in p50)
    gate, bare = (statistics.median(one[way][0] for one in found["rounds"]) for way in ("gate", "bare"))
    gate_cpu, bare_cpu = (statistics.median(one[way][1] for one in found["rounds"]) for way in ("gate", "bare"))
    share = statistics.median(one["gate"][0] / one["bare"][0] for one in found["rounds"])
    rate = Target(at_least=found["target"], of="host")
    return [
        Figure(
            f"state.get over an echo, p50, {name}", "us", echo, get, ratio, TRIP_TARGET if name == "SQLite" else None
        ),
        Figure(f"state.set, {PRODUCERS} producers, durable, {name}", "/s", host=gate, target=rate),
        Figure(f"state.set over the same rows without the gate, {name}", "/s", bare, gate, share, SHARE_TARGET),
        Figure(f"CPU per state.set, {name}", "us", bare_cpu, gate_cpu, gate_cpu / bare_cpu),
        Figure(f"state.set from a runner process, {name}", "/s", host=found["wire"]),
    ]


def found(*, quick: bool, directory: Path | None = None, store: str = EMBEDDED) -> Mapping[str, Any]:
    with tempfile.TemporaryDirectory(prefix="paddock-bench-", dir=directory) as work, address(store) as at:
        return uvloop.run(measure(quick, Path(work), at))  # the loop that `paddock serve` runs on


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.host_calls", description="Measure what the gate costs.")
    parser.add_argument("--quick", action="store_true", help="a few seconds, for a first look")
    parser.add_argument("--dir", type=Path, help="where the database lives while measuring")
    parser.add_argument("--store", default=EMBEDDED, help="postgresql://..., or new for a server of its own")
    options = parser.parse_args()
    name = "SQLite" if options.store == EMBEDDED else "PostgreSQL"
    print(table_of(figures_of(found(quick=options.quick, directory=options.dir, store=options.store), name)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
