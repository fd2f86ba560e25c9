"""Files, storage areas and state: rows about what is kept, and the conditions on it. Bytes of files lie elsewhere."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from hashlib import blake2b

from paddock.ports import ScopeState
from paddock.rules.access.limits import check_cap
from paddock.rules.log.chain import check_version
from paddock.rules.rows import rows
from paddock.rules.search.tokens import after_prefix
from paddock.storage.tables.statements import (
    Ask,
    Change,
    HasEngine,
    Query,
    Work,
    Write,
    ask,
    in_turn,
    many,
    one,
    put,
    several,
    value,
)
from paddock.storage.tables.table import Gone, Table

STATE = Table(
    "state",
    rows.StateRow,
    key=("scope_key", "key"),
    again=("value", "updated_at"),
    left_out=("expected",),
    gone=Gone("value", None),
)
_ARTIFACT_BYTES = Query(
    value, "select coalesce(sum(size), 0)::bigint from artifacts where workspace_id = :workspace_id"
)
_UPLOADED_BYTES = Query(
    value,
    """
select coalesce(sum(size), 0)::bigint from artifacts
 where workspace_id = :workspace_id and user_id = :user_id and source = 'platform'""",
)
_STORED_BYTES = Query(value, "select coalesce(sum(size), 0)::bigint from storage where area_key = :area_key")
_ONE_AT_A_TIME = "/*postgres select pg_advisory_xact_lock(:lock)*/"


def _check(held: Query[int], cap: rows.ArtifactsCap | rows.UploadsCap | rows.StorageCap) -> Work[None]:
    """One at a time per workspace, user or area, over all hosts, so that two halves cannot both fit."""
    yield one_at_a_time(":".join((type(cap).__name__, *(getattr(cap, name) for name in held.names))))
    [(total,)] = yield Ask(held.sql, cap)
    check_cap(total, cap)


def one_at_a_time(name: str) -> Ask:
    """Wait for the end of every other transaction, at any host, that asked for the same name."""
    digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return ask(_ONE_AT_A_TIME, lock=int.from_bytes(digest, signed=True))


_SET_STATE = """
insert into state (scope_key, key, value, updated_at) values (:scope_key, :key, :value, :updated_at)
on conflict (scope_key, key) do update set value = excluded.value, updated_at = excluded.updated_at
 where :expected::text <> '' returning 1"""


def set_if_expected(row: rows.StateRow) -> Work[None]:
    """Compare and set one value of state; what was written before in this transaction counts."""
    found = yield Ask(
        "select value from state where scope_key = :scope_key and key = :key /*postgres for update*/", row
    )
    check_version(row.expected, found[0][0] if found else None, row.key)
    if row.value is None:
        yield Ask("delete from state where scope_key = :scope_key and key = :key", row)
    elif not (yield Ask(_SET_STATE, row)):  # another host was there in between
        check_version(row.expected, b"", row.key)


WRITES: Mapping[type, Write] = {
    rows.ArtifactRow: in_turn(
        put(
            "artifacts",
            rows.ArtifactRow,
            key="artifact_id",
            again=("conversation_id", "thread_id", "published", "expires_at"),
        )
    ),
    rows.ArtifactAttached: in_turn(
        Change("""
update artifacts
   set conversation_id = :conversation_id, published = true, expires_at = :expires_at, thread_id = :subthread_id
 where artifact_id = :artifact_id and conversation_id is null""")
    ),
    rows.ArtifactGone: in_turn(Change("delete from artifacts where artifact_id = :artifact_id")),
    rows.StorageRow: in_turn(
        put(
            "storage",
            rows.StorageRow,
            key="area_key, key",
            again=("sha256", "size", "updated_at"),
            when=lambda row: row.sha256 is not None,
        ),
        Change("delete from storage where area_key = :area_key and key = :key", when=lambda row: row.sha256 is None),
    ),
    rows.ArtifactsCap: partial(_check, _ARTIFACT_BYTES),
    rows.UploadsCap: partial(_check, _UPLOADED_BYTES),
    rows.StorageCap: partial(_check, _STORED_BYTES),
    rows.StateRow: set_if_expected,
}


_IN_USE = Query(
    value,
    """
select sha256 from artifacts where sha256 = any(:hashes::text[]) union
select sha256 from storage where sha256 = any(:hashes::text[])""",
)
_KEYS = "select key from storage where area_key = :area_key and key >= :prefix and key > :after"
_BEFORE = "select {columns} from storage where area_key >= :prefix and updated_at < :time"
_SCOPES = Query(
    several,
    """
select scope_key, key, length(value), case when length(value) <= :max_bytes then value end
  from state where scope_key = any(:scope_keys::text[]) order by scope_key, key""",
)


def _beginning(column: str, prefix: str) -> tuple[str, str | None]:
    """The condition that a column begins with `:prefix`, and the first text `:until` behind all that do.

    PostgreSQL orders escaped characters another way than they are (`postgres/texts.py`), so it has no such end then.
    """
    until = after_prefix(prefix)
    sql = f" /*postgres and starts_with({column}, :prefix)*/"
    if until is not None:
        sql += f" /*sqlite and {column} < :until*/"
    if until is not None and min(prefix) > "\x1a":
        sql += f" /*postgres and {column} < :until*/"
    return sql, until


class KeptReads(HasEngine):
    artifact = one(rows.ArtifactRow, "select {columns} from artifacts where artifact_id = :artifact_id")
    artifacts_of = many(
        rows.ArtifactRow,
        "select {columns} from artifacts where conversation_id = :session_id order by artifact_id limit :limit",
        limit=500,
    )
    expired_artifacts = many(
        rows.ArtifactRow,
        "select {columns} from artifacts where expires_at <= :now order by expires_at, artifact_id limit :limit",
        limit=500,
    )

    async def artifact_bytes(self, workspace_id: str) -> int:
        return await self.engine.one(_ARTIFACT_BYTES, workspace_id=workspace_id) or 0

    async def blobs_in_use(self, hashes: Sequence[str]) -> frozenset[str]:
        return frozenset(await self.engine.all(_IN_USE, hashes=list(hashes)))

    stored = one(rows.StorageRow, "select {columns} from storage where area_key = :area_key and key = :key")

    async def stored_keys(self, area_key: str, *, prefix: str = "", after: str = "", limit: int = 100) -> Sequence[str]:
        begins, until = _beginning("key", prefix)
        asked = {"area_key": area_key, "prefix": prefix, "until": until, "after": after, "limit": limit}
        return await self.engine.all(Query(value, f"{_KEYS}{begins} order by key limit :limit"), **asked)

    async def stored_bytes(self, area_key: str) -> int:
        return await self.engine.one(_STORED_BYTES, area_key=area_key) or 0

    async def stored_before(self, key_prefix: str, time: float, *, limit: int = 500) -> Sequence[rows.StorageRow]:
        begins, until = _beginning("area_key", key_prefix)
        query = Query(rows.StorageRow, f"{_BEFORE}{begins} order by area_key, key limit :limit")
        return await self.engine.all(query, prefix=key_prefix, until=until, time=time, limit=limit)

    state = one(value, "select value from state where scope_key = :scope_key and key = :key")

    async def state_snapshot(self, scope_keys: Sequence[str], *, max_bytes: int) -> Mapping[str, ScopeState]:
        found = await self.engine.all(_SCOPES, scope_keys=list(scope_keys), max_bytes=max_bytes)
        return _scopes_in(found, scope_keys, max_bytes)

    state_size = one(
        value, "select coalesce(sum(length(value)), 0)::bigint from state where scope_key = :scope_key", otherwise=0
    )


_Measured = tuple[str, str, int, bytes | None]
"""Scope, key, bytes of the value, and the value itself unless it is too large for anybody."""


def _scopes_in(measured: Iterable[_Measured], scope_keys: Sequence[str], max_bytes: int) -> Mapping[str, ScopeState]:
    """These scopes, out of rows in order of their keys: the values that fit one after the other into `max_bytes`."""
    sizes, left = defaultdict[str, int](int), dict.fromkeys(scope_keys, max_bytes)
    values: dict[str, dict[str, bytes]] = {scope_key: {} for scope_key in scope_keys}
    out: dict[str, list[str]] = {scope_key: [] for scope_key in scope_keys}
    for scope_key, key, size, found in measured:
        sizes[scope_key] += size
        if found is not None and size <= left[scope_key]:
            values[scope_key][key] = found
            left[scope_key] -= size
        else:
            out[scope_key].append(key)
    return {scope_key: ScopeState(sizes[scope_key], kept, tuple(out[scope_key])) for scope_key, kept in values.items()}
