"""What one host of all does now and then, after a beat of its own. One that fails keeps no other from being done."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from math import inf

import structlog

from paddock.rules.errors import StorageUnavailableError

log = structlog.get_logger("paddock.chores")

Do = Callable[[], Awaitable[object]]


@dataclass(slots=True)
class _Chore:
    do: Do
    seconds: float
    done_at: float = -inf


class Chores:
    def __init__(self) -> None:
        self._chores: list[_Chore] = []

    def add(self, do: Do, *, every: float = 0.0) -> None:
        """`every` so many seconds; 0: at each beat."""
        self._chores.append(_Chore(do, every))

    async def see_to(self, now: float) -> None:
        """All that is due. Raises StorageUnavailableError."""
        for chore in self._chores:
            if now - chore.done_at >= chore.seconds:
                chore.done_at = now
                await _try(chore.do)


async def _try(do: Do) -> None:
    try:
        await do()
    except StorageUnavailableError:
        raise
    except Exception:
        log.exception("a chore failed", action="chores.do")
