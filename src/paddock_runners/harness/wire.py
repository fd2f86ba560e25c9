"""The language of one harness, spoken over one process. A runner's folder says how; here is what all of them share.

A task of its own reads, so that requests can be answered while the turn goes on; what it hears waits in a bounded
queue.
"""

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, cast

from paddock_runners.harness.attachments import Picture
from paddock_runners.harness.heard import Gone, HarnessError, Heard, Over, Permission
from paddock_runners.harness.process import HURRIED, PATIENT, HarnessProcess
from paddock_sdk.causes import cause_of

WAITING = 1000
"""Things heard and not yet taken; a slow reader slows the harness down instead of filling memory."""
COOPERATIVE_SECONDS = 0.7


class Wire(ABC):
    """Subclasses read and write their harness's lines."""

    steers = False
    """Whether input can be given to it in the middle of a turn."""
    knows_page = True
    """Whether it was told the page of its run when it began; else its session is told it in words."""

    def __init__(self, process: HarnessProcess) -> None:
        self.process = process
        self._heard: asyncio.Queue[Heard] = asyncio.Queue(WAITING)
        self._over = asyncio.Event()
        self._deaf = False
        self._pump = asyncio.create_task(self._listen())

    # --- what each harness does its own way -----------------------------------------------------------------

    @abstractmethod
    async def open(self, session_id: str | None) -> None:
        """Greet it and begin or go on with a session. Raises LostSessionError."""

    @abstractmethod
    async def ask(self, text: str, pictures: Sequence[Picture] = ()) -> None:
        """Begin the turn. Pictures are files already; where the harness takes one, the model is shown it as well."""

    @abstractmethod
    async def steer(self, text: str) -> None:
        """Add words to the turn that is going on. They are never lost: at worst they begin another turn of this run."""

    @abstractmethod
    async def interrupt(self) -> None:
        """Ask it to stop the turn. Whether it does is seen by its word that the turn is over."""

    @abstractmethod
    async def answer(self, asked: Permission, allowed: bool, why: str, *, stop: bool = False) -> None:
        """Its permission, or not; `stop`: not, and end the turn."""

    @abstractmethod
    def read(self, said: dict[str, Any]) -> Iterable[Heard]:
        """Translate one line."""

    # --- shared ---------------------------------------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        return self._over.is_set()

    def begin_turn(self) -> None:
        self._over.clear()

    def write(self, value: object) -> None:
        self.process.write(value)

    async def next(self, seconds: float) -> Heard:
        """The next thing it says. Raises TimeoutError."""
        if not self._heard.empty():
            return self._heard.get_nowait()
        return await asyncio.wait_for(self._heard.get(), max(seconds, 0.0))

    async def close(self) -> None:
        """The whole ladder: its own cancel while a turn goes on, then the process and what it left."""
        self._deaf = True
        finished = self._over.is_set() or self._pump.done()
        if not finished:
            await self._stop_politely()
        await self.process.end(PATIENT if finished else HURRIED)
        self._pump.cancel()

    async def _stop_politely(self) -> None:
        while not self._heard.empty():
            self._heard.get_nowait()  # else the reader could wait for room and never hear the end
        try:
            async with asyncio.timeout(COOPERATIVE_SECONDS):
                await self.interrupt()
                await self._over.wait()
        except (TimeoutError, HarnessError, ConnectionError):
            return

    async def _listen(self) -> None:
        try:
            async for line in self.process.lines():
                for heard in self._read_line(line):
                    await self.tell(heard)
            await self.tell(Gone(await self.process.how_it_ended()))
        except HarnessError as problem:
            await self.tell(Gone(str(problem)))
        except Exception as problem:  # noqa: BLE001 - whatever it said: the turn must not wait for a reader that is gone
            await self.tell(Gone(f"it said something that cannot be read: {cause_of(problem)[:200]}"))
        finally:
            self.on_silence()

    @abstractmethod
    def on_silence(self) -> None:
        """Nothing more will be heard; whoever waits for an answer is told."""

    async def tell(self, heard: Heard) -> None:
        """Something was heard; the harness's word that the turn is over is known at once."""
        if isinstance(heard, Over | Gone):
            self._over.set()
        if not self._deaf:
            await self._heard.put(heard)

    def _read_line(self, line: bytes) -> Iterable[Heard]:
        """A line that is no JSON object is somebody's stray print."""
        try:
            said: Any = json.loads(line)
        except ValueError:
            return ()
        return self.read(cast("dict[str, Any]", said)) if isinstance(said, dict) else ()
