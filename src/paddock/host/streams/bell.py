"""Bell for a task that polls: it wakes at a given moment, or when rung. Every wait has an end."""

import asyncio

LOOK_SECONDS = 15.0
"""The longest rest: what another host wrote is noticed by then."""
LEAST_SECONDS = 0.05


class Bell:
    def __init__(self) -> None:
        self._rung = asyncio.Event()

    def ring(self) -> None:
        self._rung.set()

    def hush(self) -> None:
        """Clear the bell before looking."""
        self._rung.clear()

    async def rest(self, seconds: float) -> None:
        """So long, or until it rings."""
        try:
            async with asyncio.timeout(seconds):
                await self._rung.wait()
        except TimeoutError:
            pass


def until(moment: float | None, now: float) -> float:
    """Seconds until the next thing to do; None when there is none."""
    return LOOK_SECONDS if moment is None else min(max(moment - now, LEAST_SECONDS), LOOK_SECONDS)
