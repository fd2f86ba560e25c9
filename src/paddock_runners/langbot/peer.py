"""One connection to a LangBot plugin: requests both ways, streams with their acknowledgements, cancel. Every wait ends.

What the actions mean is the callers' business; who may ask for what is decided where they are answered.
"""

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, cast

from paddock_runners.langbot.frames import BrokenWireError, Joiner, lines_of
from paddock_runners.langbot.refusal import RefusedError, not_offered
from paddock_runners.toolkit.values import mapping

log = logging.getLogger("paddock.langbot")

Data = dict[str, Any]
Answer = Callable[[str, Data], Awaitable[Data] | AsyncIterator[Data]]
"""Given an action and its data: what is answered, once or as a stream. Raises RefusedError."""

WINDOW = 8
"""Frames of a stream that may be on their way unacknowledged; the other side counts the same."""
QUEUED = 4096
"""Frames of a stream that may wait here when the other side knows no acknowledgements."""
ASKED_AT_ONCE = 128
REQUEST_SECONDS = 30.0
WRITE_SECONDS = 30.0
CLEAN_UP_SECONDS = 0.4
"""For cancelled work to clean up, before it is taken for work that will not stop."""


class PeerError(Exception):
    """The plugin refused, went away or said nonsense."""


class Stream:
    """The answers to one of our requests, as they come."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.ended = asyncio.Event()
        self._said: asyncio.Queue[Data | PeerError] = asyncio.Queue()

    def add(self, said: Data) -> None:
        if self._said.qsize() >= QUEUED:
            self.fail("it says more than anybody reads")
            return
        if said.get("chunk_status") == "end" or said.get("code") != 0:
            self.ended.set()
        self._said.put_nowait(said)

    def fail(self, why: str) -> None:
        self.ended.set()
        self._said.put_nowait(PeerError(why))

    async def next(self) -> Data:
        """Raises PeerError for a refusal and when there is nobody to answer any more."""
        said = await self._said.get()
        if isinstance(said, PeerError):
            raise said
        if said.get("code") != 0:
            raise PeerError(str(said.get("message") or "no reason given")[:2000])
        return said


class Window:
    """Flow-control window: how much of a stream the other side has read."""

    def __init__(self) -> None:
        self.sent = self._read = 0
        self._more = asyncio.Event()

    def acknowledged(self, index: object) -> None:
        if isinstance(index, int) and self._read <= index <= self.sent:
            self._read = index
            self._more.set()

    async def room(self) -> None:
        while self.sent - self._read >= WINDOW:
            self._more.clear()
            async with asyncio.timeout(WRITE_SECONDS):
                await self._more.wait()


class Peer:
    """`run` reads until the plugin is silent; `answer` is asked about everything it wants of us."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: Answer) -> None:
        self._reader, self._writer, self._answer = reader, writer, answer
        self._ids = itertools.count(1)
        self._waiting: dict[int, Stream] = {}
        self._windows: dict[int, Window] = {}
        self._answering: dict[int, asyncio.Task[None]] = {}
        self._lock = asyncio.Lock()
        self.broken = ""
        """Why it cannot be talked to any more; empty while it can."""

    async def run(self) -> None:
        """Read what it says until it says no more. Everything that waits is told why."""
        why = "its process ended"
        try:
            await self._read()
        except (BrokenWireError, ValueError, OSError) as problem:
            why = f"it broke the wire: {problem}"
        finally:
            self._give_up(why)

    # --- what we ask ----------------------------------------------------------------------------------------

    async def request(self, action: str, data: Mapping[str, Any], seconds: float = REQUEST_SECONDS) -> Data:
        """Raises PeerError."""
        stream = self._open()
        try:
            async with asyncio.timeout(seconds):
                await self._write({"seq_id": stream.number, "action": action, "data": data})
                return mapping((await stream.next()).get("data"))
        except TimeoutError:
            raise PeerError(f"it did not answer {action} within {seconds:.0f} seconds") from None
        finally:
            self.forget(stream)

    async def open(self, action: str, data: Mapping[str, Any]) -> Stream:
        """Begin a stream; read it with `pieces`, and `forget` it in the end. Raises PeerError."""
        stream = self._open()
        await self._write({"seq_id": stream.number, "action": action, "data": data, "stream_flow_control": 1})
        return stream

    async def pieces(self, stream: Stream) -> AsyncIterator[Data]:
        while (said := await stream.next()).get("chunk_status") != "end":
            yield mapping(said.get("data"))
            index = said.get("stream_index")
            if isinstance(index, int) and index % (WINDOW // 2) == 0:
                data = {"seq_id": stream.number, "index": index}
                await self._write({"seq_id": next(self._ids), "action": "__stream_ack", "data": data})

    async def cancel(self, stream: Stream, seconds: float) -> bool:
        """Ask it to stop, and wait until the work over there is gone. False when it goes on all the same.

        Work that was cancelled says nothing more, and asking after it means cancelling it again, which would break
        its clean-up: so we ask once, after a while. A peer that knows no cancel says so; its stream may still end by
        itself, because it can look up whether it is wanted.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                try:
                    if await self._cancelled(stream):
                        await asyncio.sleep(CLEAN_UP_SECONDS)
                        return not await self._cancelled(stream)
                except PeerError:
                    await stream.ended.wait()
                return True
        return False

    async def _cancelled(self, stream: Stream) -> bool:
        """Cancel a stream; return False if there was none."""
        return (await self.request("__cancel_action", {"seq_id": stream.number})).get("cancelled") is True

    def forget(self, stream: Stream) -> None:
        self._waiting.pop(stream.number, None)

    def _open(self) -> Stream:
        if self.broken:
            raise PeerError(self.broken)
        stream = Stream(next(self._ids))
        self._waiting[stream.number] = stream
        return stream

    async def _write(self, message: Mapping[str, Any]) -> None:
        """One message at a time, in whole: the pieces of two would be taken for one."""
        lines = [*lines_of(message)]
        async with self._lock:
            try:
                async with asyncio.timeout(WRITE_SECONDS):
                    self._writer.writelines(lines)
                    await self._writer.drain()
            except (OSError, TimeoutError) as problem:
                self._give_up("it does not read what it is told")
                raise PeerError(self.broken) from problem

    # --- what it says ---------------------------------------------------------------------------------------

    async def _read(self) -> None:
        joiner = Joiner()
        while line := await self._reader.readline():
            said = joiner.feed(line)
            if said is None:
                continue
            if "action" in said:
                self._asked(said)
            elif (stream := self._waiting.get(cast("int", said.get("seq_id")))) is not None:
                stream.add(said)

    def _asked(self, said: Data) -> None:
        number, action, data = said.get("seq_id"), str(said.get("action")), mapping(said.get("data"))
        if not isinstance(number, int):
            return
        if action == "__stream_ack":
            window = self._windows.get(cast("int", data.get("seq_id")))
            if window is not None:
                window.acknowledged(data.get("index"))
        flow = said.get("stream_flow_control") == 1
        work = self._busy(number) if len(self._answering) >= ASKED_AT_ONCE else self._do(number, action, data, flow)
        task = asyncio.create_task(work)
        self._answering[number] = task
        task.add_done_callback(lambda _: self._answering.pop(number, None))

    async def _busy(self, number: int) -> None:
        await self._refuse(number, RefusedError("rate_limited", "too many calls at once", retryable=True))

    async def _do(self, number: int, action: str, data: Data, flow: bool) -> None:
        try:
            with suppress(PeerError, TimeoutError):
                await self._reply(number, action, data, flow)
        except RefusedError as refusal:
            await self._refuse(number, refusal)
        except ValueError as problem:
            await self._refuse(number, RefusedError("payload_too_large", str(problem)))
        except Exception:
            log.exception("langbot: %s failed", action)
            await self._refuse(number, RefusedError("runtime_error", "the adapter made a mistake; its log has it"))

    async def _reply(self, number: int, action: str, data: Data, flow: bool) -> None:
        if action.startswith("__"):
            await self._say(number, self._housekeeping(action, data))
            return
        answered = self._answer(action, data)
        if isinstance(answered, Awaitable):
            await self._say(number, await answered)
        else:
            await self._stream(number, answered, flow)

    async def _stream(self, number: int, answered: AsyncIterator[Data], flow: bool) -> None:
        window = self._windows[number] = Window()
        try:
            async for piece in answered:
                await window.room() if flow else None
                window.sent += 1
                await self._say(number, piece, index=window.sent if flow else None)
            await self._say(number, {}, status="end")
        finally:
            del self._windows[number]

    def _housekeeping(self, action: str, data: Data) -> Data:
        match action:
            case "__ping" | "__heartbeat":
                return {"alive": True}
            case "__stream_ack":
                return {"accepted": True}
            case "__cancel_action":
                task = self._answering.get(cast("int", data.get("seq_id")))
                return {"cancelled": task is not None and task.cancel()}
            case _:
                raise not_offered(action)

    async def _say(self, number: int, data: Data, *, status: str = "continue", index: int | None = None) -> None:
        said = {"seq_id": number, "code": 0, "message": "success", "data": data, "chunk_status": status}
        await self._write(said if index is None else {**said, "stream_index": index})

    async def _refuse(self, number: int, why: RefusedError) -> None:
        with suppress(PeerError):
            said = {"seq_id": number, "code": 1, "message": why.message, "data": why.data, "chunk_status": "continue"}
            await self._write(said)

    def _give_up(self, why: str) -> None:
        self.broken = self.broken or why
        for stream in [*self._waiting.values()]:
            stream.fail(self.broken)
        for task in [*self._answering.values()]:
            if task is not asyncio.current_task():
                task.cancel()
