"""Artifacts and storage areas: how their rows are written, checked and looked up. Bytes lie elsewhere.

Their order counts, and so do conditions on what is there: such rows are written one after the other in a transaction of
their own (`guarded.py`), and not with the group's one statement.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from hashlib import blake2b
from operator import attrgetter
from typing import Any

from paddock.rules.access.limits import check_cap
from paddock.rules.log.chain import check_version
from paddock.rules.rows.rows import (
    ArtifactAttached,
    ArtifactGone,
    ArtifactRow,
    ArtifactsCap,
    StateRow,
    StorageCap,
    StorageRow,
    UploadsCap,
)
from paddock.rules.search.tokens import after_prefix
from paddock.storage.postgres.connection import Connection
from paddock.storage.postgres.reader import HasReader
from paddock.storage.postgres.texts import escaped_column

# ruff: noqa: S608 - the column lists are our own, values are always bound
ARTIFACT = (
    "artifact_id, workspace_id, user_id, conversation_id, thread_id, run_id, agent_id, runner_id, source, "
    "artifact_type, mime_type, name, size, sha256, published, created_at, expires_at, metadata"
)
STORED = "area_key, key, sha256, size, updated_at"
_artifact_values = attrgetter(*ARTIFACT.split(", "))
_stored_values = attrgetter(*STORED.split(", "))

_SET_ARTIFACT = f"""
insert into artifacts ({ARTIFACT}) values ({", ".join(f"${n}" for n, _ in enumerate(ARTIFACT.split(", "), 1))})
on conflict (artifact_id) do update set conversation_id = excluded.conversation_id, thread_id = excluded.thread_id,
  published = excluded.published, expires_at = excluded.expires_at"""
_DROP_ARTIFACT = "delete from artifacts where artifact_id = $1"
_SET_STORED = f"""
insert into storage ({STORED}) values ($1, $2, $3, $4, $5)
on conflict (area_key, key) do update
  set sha256 = excluded.sha256, size = excluded.size, updated_at = excluded.updated_at"""
_DROP_STORED = "delete from storage where area_key = $1 and key = $2"
_ARTIFACT_BYTES = "select coalesce(sum(size), 0)::bigint from artifacts where workspace_id = $1"
_UPLOADED_BYTES = """
select coalesce(sum(size), 0)::bigint from artifacts
 where workspace_id = $1 and user_id = $2 and source = 'platform'"""
_ATTACH = """
update artifacts set conversation_id = $2, published = true, expires_at = $3, thread_id = $4
 where artifact_id = $1 and conversation_id is null"""
_STORED_BYTES = "select coalesce(sum(size), 0)::bigint from storage where area_key = $1"
_IN_USE = """
select hash from unnest($1::text[]) as hash where exists (select 1 from artifacts where sha256 = hash)
                                               or exists (select 1 from storage where sha256 = hash)"""
_STATE = "select value from state where scope_key = $1 and key = $2 for update"
_ADD_STATE = """
insert into state (scope_key, key, value, updated_at) values ($1, $2, $3, $4) on conflict do nothing returning 1"""
_SET_STATE = "update state set value = $3, updated_at = $4 where scope_key = $1 and key = $2"
_DROP_STATE = "delete from state where scope_key = $1 and key = $2"
_LOCK = "select pg_advisory_xact_lock($1)"


# --- writing ---------------------------------------------------------------------------------------------------------


async def _write_artifact(connection: Connection, row: ArtifactRow) -> None:
    await connection.fetch(_SET_ARTIFACT, *_artifact_values(row))


async def _attach_artifact(connection: Connection, row: ArtifactAttached) -> None:
    await connection.fetch(_ATTACH, row.artifact_id, row.conversation_id, row.expires_at, row.subthread_id)


async def _drop_artifact(connection: Connection, row: ArtifactGone) -> None:
    await connection.fetch(_DROP_ARTIFACT, row.artifact_id)


async def _write_stored(connection: Connection, row: StorageRow) -> None:
    if row.sha256 is None:
        await connection.fetch(_DROP_STORED, row.area_key, row.key)
    else:
        await connection.fetch(_SET_STORED, *_stored_values(row))


async def _check_artifacts(connection: Connection, cap: ArtifactsCap) -> None:
    await _check(connection, _ARTIFACT_BYTES, cap, cap.workspace_id)


async def _check_uploads(connection: Connection, cap: UploadsCap) -> None:
    await _check(connection, _UPLOADED_BYTES, cap, cap.workspace_id, cap.user_id)


async def _check_stored(connection: Connection, cap: StorageCap) -> None:
    await _check(connection, _STORED_BYTES, cap, cap.area_key)


async def _check(connection: Connection, sql: str, cap: ArtifactsCap | UploadsCap | StorageCap, *about: str) -> None:
    """One at a time per workspace, user or area, over all hosts, so that two halves cannot both fit."""
    await connection.fetch(_LOCK, _number_of(f"{type(cap).__name__}:{':'.join(about)}"))
    check_cap(await connection.fetchval(sql, *about), cap)


async def set_if_expected(connection: Connection, row: StateRow) -> None:
    """Compare and set one value of state; what was written before in this transaction counts."""
    found = await connection.fetchrow(_STATE, row.scope_key, row.key)
    check_version(row.expected, found[0] if found else None, row.key)
    if row.value is None:
        await connection.fetch(_DROP_STATE, row.scope_key, row.key)
    elif found:
        await connection.fetch(_SET_STATE, row.scope_key, row.key, row.value, row.updated_at)
    elif not await connection.fetch(_ADD_STATE, row.scope_key, row.key, row.value, row.updated_at):
        found = await connection.fetchrow(_STATE, row.scope_key, row.key)  # another host was there in between
        check_version(row.expected, found[0] if found else b"", row.key)


def _number_of(name: str) -> int:
    return int.from_bytes(blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest(), signed=True)


KEPT_WRITES: Mapping[type, Callable[[Connection, Any], Awaitable[None]]] = {
    ArtifactRow: _write_artifact,
    ArtifactAttached: _attach_artifact,
    ArtifactGone: _drop_artifact,
    StorageRow: _write_stored,
    ArtifactsCap: _check_artifacts,
    UploadsCap: _check_uploads,
    StorageCap: _check_stored,
}


# --- looking up ------------------------------------------------------------------------------------------------------


class KeptReads(HasReader):
    """Artifacts and storage areas, looked up."""

    async def artifact(self, artifact_id: str) -> ArtifactRow | None:
        found = await self.reader.one(f"select {ARTIFACT} from artifacts where artifact_id = $1", artifact_id)
        return ArtifactRow(*found) if found else None

    async def artifacts_of(self, conversation_id: str, *, limit: int = 500) -> Sequence[ArtifactRow]:
        sql = f"select {ARTIFACT} from artifacts where conversation_id = $1 order by artifact_id limit $2"
        return [ArtifactRow(*found) for found in await self.reader.all(sql, conversation_id, limit)]

    async def expired_artifacts(self, now: float, *, limit: int = 500) -> Sequence[ArtifactRow]:
        sql = f"select {ARTIFACT} from artifacts where expires_at <= $1 order by expires_at, artifact_id limit $2"
        return [ArtifactRow(*found) for found in await self.reader.all(sql, now, limit)]

    async def artifact_bytes(self, workspace_id: str) -> int:
        return (await self.reader.one(_ARTIFACT_BYTES, workspace_id))[0]

    async def blobs_in_use(self, hashes: Sequence[str]) -> frozenset[str]:
        return frozenset(found[0] for found in await self.reader.all(_IN_USE, escaped_column(hashes)))

    async def stored(self, area_key: str, key: str) -> StorageRow | None:
        sql = f"select {STORED} from storage where area_key = $1 and key = $2"
        found = await self.reader.one(sql, area_key, key)
        return StorageRow(*found) if found else None

    async def stored_keys(self, area_key: str, *, prefix: str = "", after: str = "", limit: int = 100) -> Sequence[str]:
        sql = "select key from storage where area_key = $1 and key >= $2 and key > $3 and starts_with(key, $2)"
        values: list[Any] = [area_key, prefix, after, limit]
        if (until := _end_of(prefix)) is not None:
            sql, values = f"{sql} and key < $5", [*values, until]
        return [found[0] for found in await self.reader.all(f"{sql} order by key limit $4", *values)]

    async def stored_bytes(self, area_key: str) -> int:
        return (await self.reader.one(_STORED_BYTES, area_key))[0]

    async def stored_before(self, key_prefix: str, time: float, *, limit: int = 500) -> Sequence[StorageRow]:
        sql = f"""
        select {STORED} from storage where area_key >= $1 and starts_with(area_key, $1) and updated_at < $2
           and ($3::text is null or area_key < $3) order by area_key, key limit $4"""
        values = (key_prefix, time, _end_of(key_prefix), limit)
        return [StorageRow(*found) for found in await self.reader.all(sql, *values)]


def _end_of(prefix: str) -> str | None:
    """What comes after all that begins so, if the database orders it like us: escaped characters it does not."""
    return after_prefix(prefix) if prefix and min(prefix) > "\x1a" else None
