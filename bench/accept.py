"""`python -m bench.accept`: what `POST /runs` costs the server, beside a bare route that validates the same body.

Counted is the CPU of the server's own process (all its threads, not its runners) from the first byte of the first
request to the last byte of the last 202. The runner stands still meanwhile, so that what counts is handing in:
reading, checking, deciding, the commit that the 202 waits for, and writing the run to its runner; what the runner
answers comes later and is measured elsewhere.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from uuid import uuid4

from bench.doors import native_request
from bench.paddock import paddock_launch
from bench.scripts import SHORT
from bench.servers import Launch, Server, cpu_of, free_port, serving
from bench.verdicts import Line, shown

TARGET = 3.0
CONNECTIONS = 16
REQUESTS = 160
REST_SECONDS = 2.0
PATHS = {"library": "/runs", "rules": "/rules", "host": "/api/v1/agent/runs"}


async def hand_in(port: int, path: str, count: int) -> None:
    """So many requests on a few connections, each the first of a thread of its own. Raises when one is not a 202."""
    left = iter(range(count))

    async def worker() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in left:
            writer.write(native_request(path, str(uuid4()), SHORT))
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
            body = await reader.readexactly(length)
            if not head.startswith(b"HTTP/1.1 202"):
                raise SystemExit(f"{path} answered {head[:40]!r}: {body[:300]!r}")
        writer.close()

    async with asyncio.timeout(60):
        await asyncio.gather(*(worker() for _ in range(CONNECTIONS)))


@contextmanager
def standing_still(server: Server) -> Generator[None]:
    """The server's children do nothing in this block."""
    children = server.process.children(recursive=True)
    for child in children:
        child.suspend()
    try:
        yield
    finally:
        for child in children:
            child.resume()


def one_round(server: Server, path: str, count: int) -> float:
    """Microseconds of the server's CPU per request."""
    with standing_still(server):
        before = cpu_of(server.process)
        asyncio.run(hand_in(server.port, path, count))
        return (cpu_of(server.process) - before) / count * 1e6


def measure(work: Path, rounds: int) -> Mapping[str, Sequence[float]]:
    found: dict[str, list[float]] = {name: [] for name in PATHS}
    with ExitStack() as running:
        port = free_port()
        command = (sys.executable, "-m", "bench.accept_floor", "--port", str(port))
        floor = running.enter_context(serving(Launch("the bare route", command, port), work / "floor.log"))
        host = running.enter_context(serving(paddock_launch(work), work / "host.log"))
        servers = {"library": floor, "rules": floor, "host": host}
        for name, path in PATHS.items():  # bytecode, a runner, connections
            asyncio.run(hand_in(servers[name].port, path, REQUESTS))
        for _ in range(rounds):
            time.sleep(REST_SECONDS)  # until the runs of the last round are over
            for name, path in PATHS.items():
                found[name].append(one_round(servers[name], path, REQUESTS))
    return found


def lines_of(found: Mapping[str, Sequence[float]]) -> list[Line]:
    middle = {name: statistics.median(values) for name, values in found.items()}
    ratio = {
        name: statistics.median(ours / floor for ours, floor in zip(found["host"], found[name], strict=True))
        for name in ("library", "rules")
    }
    return [
        Line("bare route, body read with msgspec, CPU", f"{middle['library']:.0f} us"),
        Line("bare route, body read by the host's rules, CPU", f"{middle['rules']:.0f} us"),
        Line("POST /runs until 202, CPU of the host", f"{middle['host']:.0f} us"),
        Line(
            "POST /runs over the bare route with the rules",
            f"{ratio['rules']:.2f}",
            f"<= {TARGET:g}",
            ratio["rules"] <= TARGET,
        ),
        Line("POST /runs over the bare route with msgspec", f"{ratio['library']:.2f}"),
    ]


def run(*, quick: bool, directory: Path | None = None) -> None:
    with tempfile.TemporaryDirectory(prefix="paddock-bench-", dir=directory) as work:
        print(shown(lines_of(measure(Path(work), 3 if quick else 7))))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.accept", description=__doc__)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    run(quick=options.quick)
    return 0


if __name__ == "__main__":
    sys.exit(main())
