"""An event loop for tests whose outcome must not depend on how fast the machine is.

Time stands still while anything can be done, and jumps to the next timer when nothing can. Nothing here may wait for
another thread or process: then nothing would ever happen, and that is said.
"""

import asyncio
import selectors
from typing import Any


class _Jumping(selectors.DefaultSelector):
    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        found = super().select(0)
        if not found and timeout is None:
            raise RuntimeError("everybody waits and no timer is set: nothing will ever happen")
        if not found and timeout is not None:
            self.now += timeout
        return found


class StillLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now
