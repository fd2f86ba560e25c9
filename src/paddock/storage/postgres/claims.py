"""Claims of sessions: those that come together are one question, because asking costs more than answering.

While a question is under way the next claims gather, but not for long. A session whose row another transaction holds
is passed over and asked for alone, so that it waits alone; and so are all when a question fails as a whole.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NamedTuple

from paddock.rules.errors import HostError, OwnedElsewhereError, StorageUnavailableError
from paddock.storage.postgres.engine import MAX_CONNECTIONS
from paddock.storage.tables.log import PLACE
from paddock.storage.tables.statements import Engine, Query, several

# ruff: noqa: S608 - the column lists are our own, values are always bound
MAX_TOGETHER = 64
GATHER_SECONDS = 0.005
"""How long a claim waits at most for the question before it."""
MAX_UNDER_WAY = MAX_CONNECTIONS // 2
_TAKEN = ", ".join(f"taken.{column}" for column in PLACE.split(", "))
# A claim of a known session writes its epoch, so every earlier owner is stale at once, on whichever host it is. An
# unknown one has no row to write: there the first to open it wins. A host takes nothing from another that is there and
# has something going on in the session; whoever is no host takes it always.
_CLAIM = f"""
with asked as materialized (
  select given.*, nextval('epochs') as epoch
    from unnest(:session_ids::text[]) with ordinality as given (session_id, place)),
locked as (
  select s.session_no, asked.epoch from sessions as s join asked on s.session_id = asked.session_id
   for update of s{{or_else}}),
taken as (
  update sessions as s set epoch = greatest(s.epoch + 1, locked.epoch), boot = :host::bigint from locked
   where s.session_no = locked.session_no
     and (:host::bigint is null or s.boot is null or s.boot = :host
          or not exists (select 1 from hosts where hosts.boot = s.boot and hosts.gone is null))
     and (:host is null or exists (select 1 from hosts where hosts.boot = :host and hosts.gone is null))
  returning s.epoch, {PLACE})
select coalesce(taken.epoch, asked.epoch), {_TAKEN}, known.boot, known.session_no is not null, coalesce(hosts.gone, ''),
       known.session_no is not null and not exists (select 1 from locked where locked.session_no = known.session_no),
       exists (select 1 from tombstones where tombstones.session_id = asked.session_id)
  from asked left join taken on taken.session_id = asked.session_id
  left join sessions as known on known.session_id = asked.session_id left join hosts on hosts.boot = known.boot
 order by asked.place"""
_ALONE, _TOGETHER = (Query(several, _CLAIM.format(or_else=words)) for words in ("", " skip locked"))


class Taken(NamedTuple):
    """Result of a claim: its epoch, the session's place in the log if there is such a session, if it was deleted,
    and why the host is gone that had something going on in it.
    """

    epoch: int
    place: Sequence[Any] | None
    deleted: bool = False
    left: str = ""


class _Asked(NamedTuple):
    session_id: str
    answer: asyncio.Future[Taken]


class Claims:
    """Raises epochs of sessions above all that were ever given out. `host` tells the number of the one that asks."""

    def __init__(self, engine: Engine, host: Callable[[], int | None]) -> None:
        self._engine = engine
        self._host = host
        self._waiting: list[_Asked] = []
        self._under_way: set[asyncio.Task[None]] = set()
        self._timer: asyncio.Handle | None = None

    async def take(self, session_id: str) -> Taken:
        """Raises OwnedElsewhereError, or StorageUnavailableError."""
        loop = asyncio.get_running_loop()
        asked = _Asked(session_id, loop.create_future())
        self._waiting.append(asked)
        self._see_to_it(loop)
        return await asked.answer

    def _see_to_it(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._timer is not None or not self._waiting or len(self._under_way) >= MAX_UNDER_WAY:
            return
        if self._under_way:
            self._timer = loop.call_later(GATHER_SECONDS, self._ask)
        else:
            self._timer = loop.call_soon(self._ask)

    def _ask(self) -> None:
        self._timer = None
        if group := self._next():
            self._start(self._answer(group))

    def _next(self) -> list[_Asked]:
        """Those who still wait, each session once: a second claim of it comes after the first."""
        group, later = dict[str, _Asked](), list[_Asked]()
        for asked in self._waiting:
            if asked.answer.done():
                continue  # nobody waits any more
            if asked.session_id in group or len(group) >= MAX_TOGETHER:
                later.append(asked)
            else:
                group[asked.session_id] = asked
        self._waiting = later
        return list(group.values())

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name="paddock-claims")
        self._under_way.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        if self._timer is not None and not self._under_way:
            self._timer.cancel()
            self._timer = None
        self._see_to_it(task.get_loop())

    async def _answer(self, group: Sequence[_Asked]) -> None:
        try:
            await self._question(group)
        except BaseException as error:
            if len(group) == 1 or not isinstance(error, StorageUnavailableError):
                _refuse(group, error)
            else:
                for asked in group:
                    self._start(self._answer([asked]))
            if not isinstance(error, Exception):
                raise

    async def _question(self, group: Sequence[_Asked]) -> None:
        ids = [asked.session_id for asked in group]
        query = _ALONE if len(group) == 1 else _TOGETHER
        found = await self._engine.all(query, session_ids=ids, host=self._host())
        for asked, (*row, passed_over, deleted) in zip(group, found, strict=True):
            if passed_over and len(group) > 1:
                self._start(self._answer([asked]))
            elif not asked.answer.done():
                _tell(asked.answer, row, deleted=deleted)


def _tell(answer: "asyncio.Future[Taken]", row: Sequence[Any], *, deleted: bool) -> None:
    epoch, *place, owner, known, left = row
    if place[0] is not None:
        answer.set_result(Taken(epoch, place, deleted, left))
    elif known:
        answer.set_exception(OwnedElsewhereError(owner or 0))
    else:
        answer.set_result(Taken(epoch, None, deleted, left))


def _refuse(group: Sequence[_Asked], error: BaseException) -> None:
    known = isinstance(error, HostError | StorageUnavailableError)
    refusal = error if known else StorageUnavailableError(f"the claim was given up: {error}")
    for asked in group:
        if not asked.answer.done():
            asked.answer.set_exception(refusal)
