"""Watch the event loop: count its stalls with their worst, log where each one was, and notice a loop that is deaf.

A stall is one callback that uses the loop's thread for long. It is measured in CPU time of that thread, so a machine
that is busy with something else is no stall. A thread looks at the clock; when the loop has worked it puts a callback
at the end of the loop's queue and sees what runs until that callback's turn comes. An idle loop is left alone.
Log lines hold names of functions and numbers of lines; no values, because values are what people wrote.
"""

import asyncio
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

import structlog

TICK_SECONDS = 0.05
STALL_SECONDS = 0.1
WORKED_SECONDS = 0.002
"""CPU time between two looks that is more than the answer to a question takes."""
STILL_SECONDS = 1.0
"""A stall that lasts so long is logged before it ends: it may never end."""
DEAF_SECONDS = 5.0
"""How long a loop that was asked to stop may answer nothing."""
MAX_FRAMES = 12

log = structlog.get_logger("paddock.loop")


class LoopWatch:
    """Watches the loop it is started on. What is read of it from other threads is plain numbers."""

    def __init__(self) -> None:
        self.stalls = 0
        self.worst = 0.0
        """The longest stall, in CPU seconds."""
        self.questions = 0
        """How often the loop was woken to answer."""
        self._asked_at: float | None = None
        self._when_deaf: Callable[[], None] | None = None
        self._done = False

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        loop.call_soon(self._begin, loop)

    def stop(self) -> None:
        self._done = True

    def expect_stop(self, when_deaf: Callable[[], None]) -> None:
        """From now on call `when_deaf`, from another thread, if the loop answers nothing for `DEAF_SECONDS`.

        Safe in a signal handler: nothing is locked here.
        """
        if self._asked_at is None:
            self._when_deaf, self._asked_at = when_deaf, time.monotonic()

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Runs as a callback of the loop, so the frames below it are below every callback."""
        if self._done:
            return
        depth = len(_frames(sys._getframe())) - 1  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        look = _Look(self, loop, threading.get_ident(), depth)
        threading.Thread(target=self._watch, args=(look,), name="loop-watch", daemon=True).start()

    def _watch(self, look: "_Look") -> None:
        while not self._done:
            time.sleep(TICK_SECONDS)
            look.look(insist=self._asked_at is not None)
            if self._asked_at is not None and look.unanswered_since(self._asked_at) > DEAF_SECONDS:
                self._give_up()

    def _give_up(self) -> None:
        if self._when_deaf is not None:
            self._when_deaf()
            self._when_deaf = None

    def count(self, seconds: float, stack: list[str]) -> None:
        self.stalls += 1
        self.worst = max(self.worst, seconds)
        _log("the event loop was held up", "loop.stalled", seconds, stack)

    def note_going_on(self, seconds: float, stack: list[str]) -> None:
        self.worst = max(self.worst, seconds)
        _log("the event loop is held up", "loop.stalling", seconds, stack)


class _Look:
    """One thread's view of another: the callback that runs there, and the CPU time since it was first seen."""

    def __init__(self, watch: LoopWatch, loop: asyncio.AbstractEventLoop, thread: int, depth: int) -> None:
        self._watch = watch
        self._loop = loop
        self._thread = thread
        self._depth = depth
        self._cpu = cpu_clock(thread)
        self._seen = self._cpu()
        self._asked_at: float | None = None
        self._answered: float | None = None
        self._since = self._seen
        self._root: FrameType | None = None
        self._stack: list[str] = []
        self._logged = False

    def look(self, *, insist: bool) -> None:
        """See what became of the last question; ask anew if the loop has worked since, or when `insist`."""
        now = self._cpu()
        if self._asked_at is not None:
            if self._answered is None:
                self._look_at_callback(now)
            else:
                self._settle(self._answered)
        if self._asked_at is None and (insist or now - self._seen > WORKED_SECONDS):
            self._ask(now)
            self._look_at_callback(now)
        self._seen = now

    def unanswered_since(self, moment: float) -> float:
        if self._asked_at is None or self._answered is not None:
            return 0.0
        return time.monotonic() - max(moment, self._asked_at)

    def _ask(self, now: float) -> None:
        self._since, self._root, self._stack, self._logged = now, None, [], False
        self._answered, self._asked_at = None, time.monotonic()
        self._watch.questions += 1
        try:
            self._loop.call_soon_threadsafe(self._answer)
        except RuntimeError:  # the loop is closed
            self._asked_at = None

    def _answer(self) -> None:
        self._answered = self._cpu()

    def _look_at_callback(self, now: float) -> None:
        """Restart the timer when another callback runs than at the last look. Callbacks in between were short,
        unless one call into C kept this thread from looking."""
        frames = _frames(sys._current_frames().get(self._thread))  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        root = frames[self._depth] if len(frames) > self._depth else None
        if root is not self._root:
            self._root, self._stack, self._logged = root, [], False
            self._since = self._seen if now - self._seen > STALL_SECONDS else now
        lasted = now - self._since
        if lasted > STALL_SECONDS and not self._stack:
            self._stack = [_name(frame) for frame in frames[self._depth :]][-MAX_FRAMES:]
        if lasted > STILL_SECONDS and not self._logged:
            self._logged = True
            self._watch.note_going_on(lasted, self._stack)

    def _settle(self, answered: float) -> None:
        lasted = answered - self._since
        self._asked_at, self._root = None, None
        if lasted > STALL_SECONDS:
            self._watch.count(lasted, self._stack)


def cpu_clock(thread: int) -> Callable[[], float]:
    """The CPU seconds of a thread; where a system does not tell, those of the process."""
    if not hasattr(time, "pthread_getcpuclockid"):
        return time.process_time
    clock = time.pthread_getcpuclockid(thread)
    return lambda: time.clock_gettime(clock)


def _frames(top: FrameType | None) -> list[FrameType]:
    """From the outermost to the innermost."""
    found: list[FrameType] = []
    while top is not None:
        found.append(top)
        top = top.f_back
    return found[::-1]


def _log(text: str, action: str, seconds: float, stack: list[str]) -> None:
    with suppress(OSError):  # nobody may be reading; the watch goes on
        log.warning(text, action=action, seconds=round(seconds, 3), where=" > ".join(stack))


def _name(frame: FrameType) -> str:
    return f"{frame.f_globals.get('__name__', '?')}.{frame.f_code.co_name}:{frame.f_lineno}"
