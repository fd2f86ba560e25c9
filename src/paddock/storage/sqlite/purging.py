"""What deleted conversations leave in the file is removed part by part, because everybody shares the one writer; and
nothing that was deleted stays readable on the disk.
"""

from collections.abc import Awaitable, Callable

from paddock.storage.tables.statements import HasEngine, Query, Work, ask, value

# ruff: noqa: S608 - the table names are our own, values are always bound
MERGE_PAGES = 500
"""Pages of the search index that are rewritten in one commit."""
_NEXT = Query(
    value, "select session_no from sessions where session_id >= 'deleted:' and session_id < 'deleted;' limit 1"
)
_PARTS = (
    """
delete from facts where fact_no in (
  select fact_no from facts where session_no = :number limit :limit) returning 1""",
    """
delete from transcript where session_no = :number
   and seq in (select seq from transcript where session_no = :number limit :limit) returning 1""",
)


def _purge(limit: int) -> Work[int]:
    found = yield _NEXT()
    if not found:
        return 0
    count, place = 0, {"number": found[0][0], "limit": limit}
    for sql in _PARTS:
        count += len((yield ask(sql, **place)))
    if not count:
        yield ask("delete from sessions where session_no = :number", **place)
    return count or 1


def _merge(pages: int) -> Work[int]:
    """One step of rewriting the search indexes, which keep deleted words until then. Done: fewer than two changes."""
    changed: list[int] = []
    for index in ("search", "thread_search"):
        [(before,)] = yield ask("select total_changes()")
        yield ask(f"insert into {index} ({index}, rank) values ('merge', :pages)", pages=pages)
        [(after,)] = yield ask("select total_changes()")
        changed.append(after - before)
    return max(changed)


class Purging(HasEngine):
    """The part of the embedded store that takes away what was deleted."""

    fold: Callable[[], Awaitable[None]]

    async def purge(self, *, limit: int = 500) -> int:
        if await self.engine.one(_NEXT) is None:
            return 0
        return await self.engine.do(lambda: _purge(limit))

    async def scrub(self) -> None:
        pages = -MERGE_PAGES  # negative to begin with: all of the index, not only what is due anyway
        while await self.engine.do(lambda pages=pages: _merge(pages)) >= 2:
            pages = MERGE_PAGES
        await self.fold()
