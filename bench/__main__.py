"""`python -m bench`: start both systems, measure, report, and leave nothing behind."""

import argparse
import os
import platform
import signal
import sys
import tempfile
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, ExitStack
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import msgspec

from bench import accept, cluster, harness, history_day, knowledge, local_agent, models, ui_schema
from bench.apart import PARTS, machine_in_a_short_run
from bench.load import LoadGenerator, load_generator
from bench.paddock import paddock_launch
from bench.report import Figure, figures_of, table_of
from bench.rounds import FULL, QUICK, SECTIONS, Bench, say
from bench.servers import BenchError, Server, bare_floor_launch, floor_launch, serving

PRINTED = {
    "accept": accept.run,
    "history-day": history_day.run,
    "ui-schema": ui_schema.run,
    "gateway": models.run,
    "local-agent": local_agent.run,
    "knowledge": knowledge.run,
    "harness": harness.run,
    "cluster": cluster.run,
}
"""What is measured by itself and printed by itself, each with a floor or a target of its own."""
LAUNCHES = {"floor": floor_launch, "bare": bare_floor_launch, "paddock": paddock_launch}
DOORS_OF = {"floor": ("floor",), "bare": ("bare",), "paddock": ("ag-ui", "pair")}


def main() -> int:
    """Exit 0 when every run was right (targets are printed, not enforced), 1 when one was not, 2 when nothing ran."""
    options = _options()
    signal.signal(signal.SIGTERM, _leave)
    try:
        for name in [name for name in options.only if name in PRINTED]:
            say(f"measuring {name}")
            PRINTED[name](quick=options.quick, directory=options.dir)
            print(f"(load average {os.getloadavg()[0]:.1f})\n", flush=True)
            options.only.remove(name)
        return _measure(options) if options.only else 0
    except BenchError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130


def _leave(number: int, _: object) -> None:
    """Leave through every `with`, so that no process is left behind."""
    sys.exit(128 + number)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure the host beside the floor.")
    parser.add_argument("--quick", action="store_true", help="a few minutes, for a first look; full takes half an hour")
    known = (*SECTIONS, *PARTS, *PRINTED)
    parser.add_argument("--only", type=_words(known), default=list(known), help=f"of {','.join(known)}")
    parser.add_argument("--systems", type=_words(LAUNCHES), default=list(LAUNCHES), help=f"of {','.join(LAUNCHES)}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="save everything that was measured")
    parser.add_argument(
        "--dir", type=Path, help="where the databases live while measuring (default: the temporary directory)"
    )
    return parser.parse_args()


def _words(known: Collection[str]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        words = text.split(",")
        if unknown := [word for word in words if word not in known]:
            raise argparse.ArgumentTypeError(f"{unknown[0]!r} is not one of {', '.join(known)}")
        return [word for word in known if word in words]

    return parse


def _measure(options: argparse.Namespace) -> int:
    load_before = os.getloadavg()
    apart = [figure for name in options.only if name in PARTS for figure in PARTS[name](options.quick, options.dir)]
    bench = _beside_the_floor(options)
    figures = [*figures_of(bench.measured, bench.memory), *apart]
    figures += machine_in_a_short_run(figures)
    heading = _heading(load_before)
    print(heading, "", table_of(figures), "", f"failed runs: {bench.errors}", *bench.problems[:10], sep="\n")
    if options.json:
        options.json.write_bytes(_saved(heading, bench, figures))
    return 1 if bench.errors else 0


def _beside_the_floor(options: argparse.Namespace) -> Bench:
    sections = [name for name in options.only if name in SECTIONS]
    with tempfile.TemporaryDirectory(prefix="paddock-bench-", dir=options.dir) as work, ExitStack() as running:
        load = running.enter_context(load_generator())
        servers = _start(options.systems if sections else (), Path(work), load, running)
        bench = Bench(QUICK if options.quick else FULL, load, servers)
        bench.warm()
        for section in sections:
            SECTIONS[section](bench)
    return bench


def _start(names: Sequence[str], work: Path, load: LoadGenerator, running: ExitStack) -> dict[str, Server]:
    """The systems, by door. Each is started twice: once so that its bytecode exists, then fresh to be measured."""
    servers: dict[str, Server] = {}
    for name in names:
        say(f"starting {name}")
        with _serving(name, work / f"{name}-once") as server:
            Bench(QUICK, load, dict.fromkeys(DOORS_OF[name], server)).warm()
        server = running.enter_context(_serving(name, work / name))
        servers |= dict.fromkeys(DOORS_OF[name], server)
    return servers


def _serving(name: str, home: Path) -> AbstractContextManager[Server]:
    home.mkdir()
    return serving(LAUNCHES[name](home), home / "log")


def _heading(load_before: Sequence[float]) -> str:
    versions = ", ".join(f"{package} {version(package)}" for package in ("starlette", "uvicorn", "uvloop", "apsw"))
    return (
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {os.cpu_count()} cores, load average {load_before[0]:.1f} before and "
        f"{os.getloadavg()[0]:.1f} after\nPython {platform.python_version()}, {versions}"
    )


def _saved(heading: str, bench: Bench, figures: Sequence[Figure]) -> bytes:
    shown = [msgspec.structs.asdict(figure) | {"verdict": figure.verdict} for figure in figures]
    whole = {
        "heading": heading,
        "figures": shown,
        "failed_runs": bench.errors,
        "problems": bench.problems,
        "memory": bench.memory,
        "rounds": bench.measured,
    }
    return msgspec.json.format(msgspec.json.encode(whole), indent=1)


if __name__ == "__main__":
    sys.exit(main())
