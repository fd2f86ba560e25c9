"""A conversation by the days on which it was held: what was said, and where a moment lies in it."""

from collections.abc import Sequence
from typing import Protocol

from paddock.rules.rows.rows import TranscriptRow


class DayRecords(Protocol):
    """Every read is of committed data, and of what the conversation's present course holds."""

    async def place_of(self, session_id: str, moment: float) -> int:
        """A number that parts the items recorded before this moment (smaller) from those since then (not smaller).

        Time goes forward in a conversation, so halving finds it: there is no index by time that every item would pay
        for. After a clock was set back some items may count for the day next to theirs; none is lost or told twice.
        """
        ...

    async def spoken(
        self,
        session_id: str,
        *,
        before: int,
        start: int = 0,
        limit: int = 1,
        newest_first: bool = True,
        left_behind: bool = False,
    ) -> Sequence[TranscriptRow]:
        """Messages of the user and of agents with start <= seq < before: no tools, no events.

        With `left_behind` also those that are not part of its present course any more.
        """
        ...
