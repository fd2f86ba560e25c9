"""Limits on the bytes of words that people keep: counted with every commit, checked before new words are accepted.

The store keeps one number per conversation, in the row that every append updates anyway. A host adds them up once for
each user and workspace, counts on by itself, and adds up again now and then, because other hosts write too. Deleting
or erasing makes room at once.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import structlog

from paddock.host.people.principals import Principal
from paddock.ports.records import KeepingRecords
from paddock.rules.errors import ErrorCode, HostError, StorageUnavailableError
from paddock.rules.log.chain import StoredFact, word_bytes
from paddock.rules.rows.rows import SessionRow
from paddock.rules.values import Value

log = structlog.get_logger(__name__)

COUNT_SECONDS = 60.0
"""How long a host counts on from a sum of the store."""
DOUBT_SECONDS = 1.0
"""A sum older than this is made again before somebody is refused: they may just have deleted something."""
REMEMBERED = 10_000
GIB = 1024**3

Whose = tuple[str, str | None]
"""A workspace and a user, or a workspace alone."""


class WordLimits(Value, frozen=True):
    """How many bytes may be kept; 0 lifts a limit."""

    of_user: int = GIB
    of_workspace: int = 20 * GIB


@dataclass(slots=True)
class _Sum:
    bytes: int
    at: float
    renewing: bool = False


@dataclass(eq=False)
class Words:
    records: KeepingRecords
    _: KW_ONLY
    spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
    limits: WordLimits = field(default_factory=WordLimits)
    now: Callable[[], float] = time.monotonic
    _sums: dict[Whose, _Sum] = field(default_factory=dict[Whose, _Sum], init=False)

    async def check(self, principal: Principal) -> None:
        """Raise PAYLOAD_TOO_LARGE when the user, or the workspace, keeps as much as they may."""
        workspace, user = principal.workspace_id, principal.user_id
        for whose, most, complaint in (
            ((workspace, user), self.limits.of_user, _YOURS),
            ((workspace, None), self.limits.of_workspace, _OF_WORKSPACE),
        ):
            if most and await self._sum(whose, most) >= most:
                raise HostError(ErrorCode.PAYLOAD_TOO_LARGE, complaint.format(mib=most // (1024 * 1024)))

    def counted(self, workspace: str, user: str | None) -> int:
        """The bytes as this host counts them."""
        return self._sums[workspace, user].bytes

    def grew(self, owner: SessionRow, facts: Sequence[StoredFact]) -> None:
        if added := word_bytes(facts):
            for whose in ((owner.workspace_id, owner.user_id), (owner.workspace_id, None)):
                if (known := self._sums.get(whose)) is not None:
                    known.bytes += added

    def count_again(self, workspace: str, *users: str) -> None:
        """Add up again for users of whom one took over conversations of the other."""
        for user in users:
            self._sums.pop((workspace, user), None)

    async def _sum(self, whose: Whose, most: int) -> int:
        """Bytes kept. The sum is made again before somebody is refused, and now and then."""
        known = self._sums.get(whose) or await self._add_up(whose)
        age = self.now() - known.at
        if known.bytes >= most and age > DOUBT_SECONDS:
            known = await self._add_up(whose)
        elif age > COUNT_SECONDS and not known.renewing:
            known.renewing = True
            self.spawn(self._renew(whose))
        return known.bytes

    async def _renew(self, whose: Whose) -> None:
        try:
            await self._add_up(whose)
        except (HostError, StorageUnavailableError) as error:
            log.warning("words were not counted", action="words.count", workspace=whose[0], reason=str(error))
            if (known := self._sums.get(whose)) is not None:
                known.at, known.renewing = self.now(), False

    async def _add_up(self, whose: Whose) -> _Sum:
        total = await self.records.words_of(*whose)
        if len(self._sums) >= REMEMBERED:
            self._sums.clear()
        found = self._sums[whose] = _Sum(total, self.now())
        return found


_YOURS = (
    "your conversations hold {mib} MiB of words, as many as a user may keep; delete conversations or erase messages, "
    "or have `user_words_mib` raised"
)
_OF_WORKSPACE = (
    "the conversations of this workspace hold {mib} MiB of words, as many as it may keep; delete conversations or "
    "erase messages, or have `workspace_words_mib` raised"
)
