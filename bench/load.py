"""The bench's end of the load generator: hands it one job at a time and waits, never longer than the job may take."""

import select
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager

import msgspec
import psutil

from bench.jobs import Job, Outcome
from bench.servers import BenchError, spawned

GRACE_SECONDS = 10.0


class LoadGenerator:
    """A running load generator."""

    def __init__(self, process: psutil.Popen) -> None:
        self._process = process

    def do(self, job: Job) -> Outcome:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(msgspec.json.encode(job) + b"\n")
        stdin.flush()
        answered, _, _ = select.select([stdout], [], [], job.limit + GRACE_SECONDS)
        line = stdout.readline() if answered else b""
        if not line:
            raise BenchError(f"the load generator did not answer within the limit of {job}")
        return msgspec.json.decode(line, type=Outcome)


@contextmanager
def load_generator() -> Generator[LoadGenerator]:
    """A load generator in a process of its own, ended with the block."""
    command = (sys.executable, "-m", "bench.client")
    with spawned(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield LoadGenerator(process)
