"""The load generator: a process of its own that reads jobs as lines and answers each with an outcome.

Raw sockets on uvloop, one keep-alive connection per worker, every run checked (status, exactly one end, the very text
asked for). It measures and judges; it never starts or stops a server. Run as `python -m bench.client`.
"""

import asyncio
import random
import sys
from collections.abc import Sequence
from time import perf_counter
from typing import cast
from uuid import uuid4

import msgspec
import uvloop

from bench.doors import DOORS
from bench.growth import is_old
from bench.jobs import Job, Outcome, spread_of
from bench.response import BadResponseError, Response, problem_with
from bench.scripts import deltas_asked

MAX_ERRORS = 50
MAX_PROBLEMS = 5


class Connection(asyncio.Protocol):
    """One connection, one exchange at a time."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one by shape, not by class
        self._answered: asyncio.Future[Response] | None = None

    def data_received(self, data: bytes) -> None:
        answered = self._answered
        if answered is None or answered.done():
            self._transport.abort()
            return
        try:
            self._response.feed(data, perf_counter())
        except (BadResponseError, ValueError) as error:
            answered.set_exception(error)
            return
        if self._response.complete:
            answered.set_result(self._response)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answered and not self._answered.done():
            self._answered.set_exception(exc or ConnectionError("the server closed the connection within a run"))

    async def exchange(self, request: bytes) -> Response:
        self._response = Response()
        self._answered = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._answered

    @property
    def closed(self) -> bool:
        return self._transport.is_closing()

    def close(self) -> None:
        self._transport.abort()


class Schedule:
    """When the next run may start, shared by all workers of a job."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._left = job.runs
        self._end = perf_counter() + job.seconds
        self._due = perf_counter()
        self._gaps = random.Random(job.concurrency)

    async def next_start(self) -> float | None:
        """Wait for the next run's turn and return the moment its clock starts; None when there are no more."""
        if self._job.runs:
            self._left -= 1
            return perf_counter() if self._left >= 0 else None
        if self._job.rate:
            return await self._next_arrival()
        now = perf_counter()
        return now if now < self._end else None

    async def _next_arrival(self) -> float | None:
        self._due += self._gaps.expovariate(self._job.rate)
        due = self._due
        if due >= self._end:
            return None
        late = perf_counter() > due
        if not late:
            await asyncio.sleep(due - perf_counter())
        # A run that had to wait for a free connection waited because of the server, so that time counts;
        # the millisecond by which a timer fires late is ours and does not.
        return due if late else perf_counter()


class Load:
    """One job being done: the workers and what they have seen so far."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._door = DOORS[job.door]
        self._old, self._young = str(uuid4()), str(uuid4())
        self._connections: list[Connection] = []
        self._problems: list[str] = []
        self._in_flight = 0
        self._first_event: list[float] = []
        self._first_text: list[float] = []
        self._whole_run: list[float] = []

    async def finish(self) -> Outcome:
        started = perf_counter()
        try:
            async with asyncio.timeout(self._job.limit):
                connections = [await self._connect() for _ in range(self._job.concurrency)]
                started = perf_counter()
                await self._load(connections)
        except TimeoutError:
            self._problems += ["no end within the time limit"] * max(1, self._in_flight)
        except OSError as error:
            self._problems.append(f"cannot connect: {error}")
        seconds = perf_counter() - started
        for connection in self._connections:
            connection.close()
        return self._outcome(seconds)

    async def _load(self, connections: Sequence[Connection]) -> None:
        schedule = Schedule(self._job)
        async with asyncio.TaskGroup() as workers:
            for connection in connections:
                workers.create_task(self._work(connection, schedule))

    async def _work(self, connection: Connection, schedule: Schedule) -> None:
        while len(self._problems) < MAX_ERRORS and (start := await schedule.next_start()) is not None:
            self._in_flight += 1
            try:
                if connection.closed:
                    connection = await self._connect()
                self._note(await self._run(connection), start)
            except (OSError, ValueError, KeyError, BadResponseError) as error:
                self._problems.append(f"{type(error).__name__}: {error}")
                connection.close()
            self._in_flight -= 1

    async def _connect(self) -> Connection:
        _, connection = await asyncio.get_running_loop().create_connection(Connection, "127.0.0.1", self._job.port)
        self._connections.append(connection)
        return connection

    async def _run(self, connection: Connection) -> Response:
        response = await connection.exchange(self._door.ask(self._next_thread(), self._job.text))
        if self._door.follow is None or response.status != 202:
            return response
        return await connection.exchange(self._door.follow(bytes(response.body)))

    def _next_thread(self) -> str:
        if not self._job.growth:
            return str(uuid4())
        return self._old if is_old(len(self._whole_run)) else self._young

    def _note(self, response: Response, start: float) -> None:
        now = perf_counter()
        if problem := problem_with(response, self._job.text):
            self._problems.append(problem)
            return
        self._first_event.append(response.first_event_at - start)
        self._first_text.append(response.first_text_at - start)
        self._whole_run.append(now - start)

    def _outcome(self, seconds: float) -> Outcome:
        runs = len(self._whole_run)
        return Outcome(
            runs=runs,
            deltas=runs * deltas_asked(self._job.text),
            seconds=seconds,
            errors=len(self._problems),
            problems=self._problems[:MAX_PROBLEMS],
            first_event=spread_of(self._first_event),
            first_text=spread_of(self._first_text),
            whole_run=spread_of(self._whole_run),
            turns_ms=[round(1000 * turn, 3) for turn in self._whole_run] if self._job.growth else [],
        )


def main() -> None:
    """Do one job per line of standard input until it ends."""
    for line in sys.stdin.buffer:
        outcome = uvloop.run(Load(msgspec.json.decode(line, type=Job)).finish())
        sys.stdout.buffer.write(msgspec.json.encode(outcome) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
