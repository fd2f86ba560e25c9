"""Owners of sessions, and what of theirs waits to be written: the part of a writer that every store has alike."""

import asyncio
from typing import Protocol

from paddock.ports import Batch

MAX_IDLE_OWNERS = 65_536


class Waits(Protocol):
    """Something to write, and who waits for it. `batch` is None for rows that belong to no session's log."""

    batch: Batch | None
    done: asyncio.Future[None]
    error: Exception | None


class Owners:
    """Owners on this host, and what of theirs is queued or being written."""

    def __init__(self) -> None:
        self.owners: dict[str, int] = {}
        """Newest epoch given out here per session, until its owner's first commit: from then on the row says it."""
        self._waiting: dict[str, int] = {}

    def own(self, session_id: str, epoch: int) -> None:
        """From now on only this epoch, or a later one, may write the session."""
        self.owners[session_id] = max(epoch, self.owners.pop(session_id, 0))
        if len(self.owners) > MAX_IDLE_OWNERS:  # the row and the head still protect a session whose owner never wrote
            del self.owners[next(iter(self.owners))]

    def is_waiting(self, session_id: str) -> bool:
        return session_id in self._waiting

    def handed_in(self, batch: Batch | None) -> None:
        if batch is not None:
            self._waiting[batch.session_id] = self._waiting.get(batch.session_id, 0) + 1

    def answer(self, work: Waits) -> None:
        if work.batch is not None:
            self._settle(work.batch, work.error)
        if work.done.done():
            return  # nobody waits any more
        if work.error is None:
            work.done.set_result(None)
        else:
            work.done.set_exception(work.error)

    def _settle(self, batch: Batch, error: Exception | None) -> None:
        left = self._waiting.pop(batch.session_id) - 1
        if left:
            self._waiting[batch.session_id] = left
        if error is None and self.owners.get(batch.session_id) == batch.epoch:
            del self.owners[batch.session_id]
