"""One harness process: started apart, read line by line, and ended for certain. What the lines mean is the wire's.

It leads a session of its own and carries a mark in its environment, so that whatever it starts can be found again.
"""

import asyncio
import json
import os
import signal
import uuid
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from paddock_runners.harness.heard import HarnessError
from paddock_runners.harness.leftovers import MARK_VARIABLE, bystanders, started_at, sweep

LINE_BYTES = 64 * 1024 * 1024
"""A harness says a whole file in one line."""
BACKLOG_BYTES = 16 * 1024 * 1024
TAIL_LINES, TAIL_CHARACTERS = 20, 500
Rung = tuple[signal.Signals | None, float]
PATIENT: tuple[Rung, ...] = ((None, 1.5), (signal.SIGTERM, 0.4), (signal.SIGKILL, 0.6))
"""What is demanded, and how long we wait for the end: its input ends first. After a turn it may still have to write."""
HURRIED: tuple[Rung, ...] = ((None, 0.4), (signal.SIGTERM, 0.3), (signal.SIGKILL, 0.6))
"""In a cancel: with the wire's own word before it, all of this fits into the time a host waits for one."""


class HarnessProcess:
    """A live, or just ended, harness."""

    def __init__(self, child: asyncio.subprocess.Process, mark: str) -> None:
        self._child, self._mark = child, mark
        self._began = started_at(child.pid)
        self._others = asyncio.create_task(asyncio.to_thread(bystanders, self._began))
        """Looked for while it starts, not when its end is waited for."""
        self._tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._draining = asyncio.create_task(self._drain_errors())
        self._ending: asyncio.Task[None] | None = None
        self.swept = 0
        """How many processes it had left behind."""

    @classmethod
    async def start(cls, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> Self:
        """Raises HarnessError with what to do when there is no such program."""
        mark, pipe = uuid.uuid4().hex, asyncio.subprocess.PIPE
        whole = {**env, MARK_VARIABLE: mark}
        try:
            child = await asyncio.create_subprocess_exec(
                *argv,
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                cwd=cwd,
                env=whole,
                limit=LINE_BYTES,
                start_new_session=True,
            )
        except OSError as problem:
            said = f"{argv[0]} cannot be started: {problem.strerror}; `paddock harness doctor` says what is missing"
            raise HarnessError("harness.not_started", said) from problem
        return cls(child, mark)

    @property
    def pid(self) -> int:
        return self._child.pid

    # --- lines ----------------------------------------------------------------------------------------------

    async def lines(self) -> AsyncIterator[bytes]:
        """Everything it says, until it says no more. Raises HarnessError for a line that has no end."""
        assert self._child.stdout is not None
        while True:
            try:
                line = await self._child.stdout.readline()
            except ValueError as problem:
                raise HarnessError("harness.bad_line", f"it said a line longer than {LINE_BYTES} bytes") from problem
            if not line:
                return
            yield line

    def write(self, value: object) -> None:
        """Say one thing. A harness that reads nothing is given up instead of being fed without end."""
        pipe = self._child.stdin
        if pipe is None or pipe.is_closing():
            return
        if pipe.transport.get_write_buffer_size() > BACKLOG_BYTES:
            raise HarnessError("harness.stalled", "the harness does not read its input")
        pipe.write(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")

    async def _drain_errors(self) -> None:
        """Its complaints are kept for a moment, so that a failure can be explained. They are never logged whole."""
        assert self._child.stderr is not None
        while piece := await self._child.stderr.read(65_536):
            self._tail.extend(line for line in piece.decode(errors="replace").splitlines() if line.strip())

    # --- the end --------------------------------------------------------------------------------------------

    async def how_it_ended(self) -> str:
        """For a person: the exit status and the last thing it complained about."""
        status = await self._within(1.0)
        await asyncio.wait([self._draining], timeout=0.2)
        ended = "it closed its output" if status is None else f"it ended with status {status}"
        last = self._tail[-1][:TAIL_CHARACTERS] if self._tail else ""
        return f"{ended}; last it said: {last}" if last else ended

    @property
    def complaints(self) -> str:
        return "\n".join(self._tail)

    async def end(self, ladder: tuple[Rung, ...] = HURRIED) -> None:
        """Go down the ladder to the ground, also when the caller is cancelled meanwhile."""
        if self._ending is None:
            self._ending = asyncio.create_task(self._descend(ladder))
        await asyncio.shield(self._ending)

    async def _descend(self, ladder: tuple[Rung, ...]) -> None:
        if self._child.stdin is not None:
            self._child.stdin.close()
            await asyncio.sleep(0)  # the loop closes the pipe on its next turn, and only then it hears of it
        for demand, seconds in ladder:
            if demand is not None:
                self._demand(demand)
            if await self._within(seconds) is not None:
                break
        others = (await self._others).still()
        self.swept = await sweep(self._mark, self._child.pid, self._began, others)
        await self._within(0.5)
        self._draining.cancel()

    def _demand(self, demand: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child.pid, demand)

    async def _within(self, seconds: float) -> int | None:
        with suppress(TimeoutError):
            return await asyncio.wait_for(asyncio.shield(asyncio.ensure_future(self._child.wait())), seconds)
        return None
