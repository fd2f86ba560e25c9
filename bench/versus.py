"""`make versus BEFORE=DIR`: this checkout beside another one of the same project, in turns, in one run.

The machine's own speed varies more than what a change costs, so each figure is the median of the quotients of many
rounds, with the interval in which that median lies with 95 % confidence.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from math import comb
from pathlib import Path
from statistics import median

from bench import growth, scripts
from bench.jobs import Job
from bench.load import LoadGenerator, load_generator
from bench.paddock import paddock_launch
from bench.rounds import LOADED_AT, QUICK, Bench, Sample, say
from bench.servers import ROOT, BenchError, Server, serving

BEFORE, NOW = "before", "now"
DOOR = "ag-ui"
CONFIDENCE = 0.95
MB = 1_000_000

Read = Callable[[Sample], float]
JOBS: Sequence[tuple[Job, Sequence[tuple[str, Read]]]] = (
    (
        Job(text=scripts.SHORT, concurrency=LOADED_AT, seconds=1.0),
        (
            ("short runs/s @16", lambda s: s.outcome.runs_per_second),
            ("CPU per short run @16", lambda s: s.cpu_ms_per_run),
        ),
    ),
    (
        Job(text=scripts.SHORT, concurrency=64, seconds=1.0),
        (("short runs/s @64", lambda s: s.outcome.runs_per_second),),
    ),
    (
        Job(text=scripts.stream(200), concurrency=LOADED_AT, seconds=1.0),
        (
            ("deltas/s @16", lambda s: s.outcome.deltas_per_second),
            ("CPU per 200 deltas @16", lambda s: s.cpu_ms_per_run),
        ),
    ),
    (
        Job(text=scripts.SHORT, concurrency=1, seconds=1.0),
        (("first event @1, p50", lambda s: s.outcome.first_event.p50),),
    ),
)
"""Each job with the figures read from it."""


def main() -> int:
    """Print a line for each figure: now over before. Exit 1 when a run was answered wrongly."""
    parser = argparse.ArgumentParser(prog="python -m bench.versus", description="Compare with another checkout.")
    parser.add_argument("before", type=Path, help="the other checkout; `make install` was run there")
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="paddock-versus-") as work, ExitStack() as running:
            load = running.enter_context(load_generator())
            checkouts = {BEFORE: options.before.resolve(), NOW: ROOT}
            servers = {name: _start(where, Path(work) / name, running) for name, where in checkouts.items()}
            return _compare(load, servers, options.rounds)
    except BenchError as error:
        print(error, file=sys.stderr)
        return 2


def _compare(load: LoadGenerator, servers: Mapping[str, Server], rounds: int) -> int:
    bench = Bench(QUICK, load, {})
    for bench.servers in ({DOOR: server} for server in servers.values()):
        bench.warm()
    idle = {name: server.usage().tree_bytes / MB for name, server in servers.items()}
    print(
        f"resident with one runner, after a few runs: {idle[BEFORE]:.0f} MB before, {idle[NOW]:.0f} MB now", flush=True
    )
    for job, figures in JOBS:
        _report(figures, _rounds(bench, servers, job, rounds))
    turns = Job(text=scripts.SHORT, concurrency=1, runs=growth.RUNS, growth=True)
    _report([("growth over 500 turns", _growth)], _rounds(bench, servers, turns, max(5, rounds // 4)))
    print(f"failed runs: {bench.errors}", *bench.problems[:10], sep="\n")
    return 1 if bench.errors else 0


def _start(checkout: Path, home: Path, running: ExitStack) -> Server:
    home.mkdir()
    launch = paddock_launch(home, checkout / ".venv" / "bin" / "paddock")
    return running.enter_context(serving(launch, home / "log"))


def _rounds(bench: Bench, servers: Mapping[str, Server], job: Job, rounds: int) -> list[dict[str, Sample]]:
    say(f"{job.text} at {job.concurrency}, {rounds} rounds")
    found: list[dict[str, Sample]] = []
    for number in range(rounds):
        order = (BEFORE, NOW) if number % 2 else (NOW, BEFORE)
        bursts: dict[str, Sample] = {}
        for name in order:
            bench.servers = {DOOR: servers[name]}
            bursts[name] = bench.burst(DOOR, job)
        found.append(bursts)
    return found


def _report(figures: Sequence[tuple[str, Read]], rounds: Sequence[dict[str, Sample]]) -> None:
    for name, read in figures:
        now, before = [read(r[NOW]) for r in rounds], [read(r[BEFORE]) for r in rounds]
        quotients = sorted(a / b for a, b in zip(now, before, strict=True))
        low, high = interval(quotients)
        print(
            f"{name:26} {median(before):>10,.3f} before {median(now):>10,.3f} now   "
            f"{median(quotients):.3f} [{low:.3f}, {high:.3f}]",
            flush=True,
        )


def interval(ordered: Sequence[float]) -> tuple[float, float]:
    """Two of the values, equally far from both ends, between which the median lies with `CONFIDENCE`.

    Needs no idea of how the values are spread: it counts how likely so many of them lie on one side of the median.
    """
    count, outside, cut = len(ordered), 0.0, 0
    while cut < count // 2:
        outside += 2 * comb(count, cut) / 2**count
        if outside > 1 - CONFIDENCE:
            break
        cut += 1
    first = max(0, cut - 1)
    return ordered[first], ordered[count - 1 - first]


def _growth(sample: Sample) -> float:
    return growth.old_turns(sample.outcome.turns_ms) / growth.young_turns(sample.outcome.turns_ms)


if __name__ == "__main__":
    sys.exit(main())
