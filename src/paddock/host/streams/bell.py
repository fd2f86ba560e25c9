"""Bell for a task that polls: it wakes at a given moment, or when the bell is rung. Every wait ends."""

import asyncio

LOOK_SECONDS = 15.0
"""The longest wait: rows of other hosts are noticed by then."""
LEAST_SECONDS = 0.05


class Bell:
    def __init__(self) -> None:
        self._rung = asyncio.Event()

    def ring(self) -> None:
        self._rung.set()

    def clear(self) -> None:
        self._rung.clear()

    async def rest(self, seconds: float) -> None:
        """Wait so long, or until the bell rings."""
        try:
            async with asyncio.timeout(seconds):
                await self._rung.wait()
        except TimeoutError:
            pass


def until(moment: float | None, now: float) -> float:
    """Seconds until a moment, within bounds."""
    return LOOK_SECONDS if moment is None else min(max(moment - now, LEAST_SECONDS), LOOK_SECONDS)
