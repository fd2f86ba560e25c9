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

from bench import harness, host_calls
from bench.load import LoadGenerator, load_generator
from bench.paddock import paddock_launch
from bench.report import Figure, figures_of, table_of
from bench.rounds import FULL, QUICK, SECTIONS, Bench, say
from bench.servers import BenchError, Server, floor_launch, serving

HOST_CALLS, HARNESS = "host-calls", "harness"
LAUNCHES = {"floor": floor_launch, "paddock": paddock_launch}
DOORS_OF = {"floor": ("floor",), "paddock": ("ag-ui", "pair")}


def main() -> int:
    """Exit 0 when every run was right (targets are printed, not enforced), 1 when one was not, 2 when nothing ran."""
    options = _options()
    signal.signal(signal.SIGTERM, _leave)
    try:
        if HOST_CALLS in options.only:  # what the gate costs: its own parts, no server and no floor
            host_calls.run(quick=options.quick, directory=options.dir)
            options.only.remove(HOST_CALLS)
        if HARNESS in options.only:  # a host of its own, with a scripted harness
            harness.run(quick=options.quick)
            options.only.remove(HARNESS)
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
    parser.add_argument("--quick", action="store_true", help="about a minute, for a first look; full takes about six")
    known = (*SECTIONS, HOST_CALLS, HARNESS)
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
    with tempfile.TemporaryDirectory(prefix="paddock-bench-", dir=options.dir) as work, ExitStack() as running:
        load = running.enter_context(load_generator())
        servers = _start(options.systems, Path(work), load, running)
        bench = Bench(QUICK if options.quick else FULL, load, servers)
        bench.warm()
        for section in options.only:
            SECTIONS[section](bench)
    figures = figures_of(bench.measured, bench.memory)
    heading = _heading(load_before)
    print(heading, "", table_of(figures), "", f"failed runs: {bench.errors}", *bench.problems[:10], sep="\n")
    if options.json:
        options.json.write_bytes(_saved(heading, bench, figures))
    return 1 if bench.errors else 0


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
