"""An event loop for tests whose outcome must not depend on how fast the machine is.

Time stands still while anything can be done, and jumps to the next timer when nothing can. What other threads do takes
no time: calls on a thread are made at once, on the loop, and a store that is writing is waited for. When nothing will
ever happen, that is said.
"""

import asyncio
import selectors
from collections.abc import Callable
from typing import Any

import anyio.to_thread
import pytest

STUCK_SECONDS = 30.0


class _Jumping(selectors.DefaultSelector):
    now = 0.0
    is_idle: Callable[[], bool] = staticmethod(lambda: True)

    def select(self, timeout: float | None = None) -> Any:
        found = super().select(0)
        if found or timeout == 0:
            return found
        if not self.is_idle():  # another thread is at work, and will wake us
            return super().select(STUCK_SECONDS)
        if timeout is None:
            raise RuntimeError("everybody waits and no timer is set: nothing will ever happen")
        self.now += timeout
        return found


class StillLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now

    def wait_for(self, is_idle: Callable[[], bool]) -> None:
        """Let no time pass while this says that another thread is at work."""
        self._jumping.is_idle = is_idle

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:
        done = self.create_future()
        done.set_result(func(*args))
        return done


@pytest.fixture
def no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make calls that would be made on a thread at once."""

    async def run_sync(func: Callable[..., Any], *args: Any, **_options: Any) -> Any:
        return func(*args)

    monkeypatch.setattr(anyio.to_thread, "run_sync", run_sync)
