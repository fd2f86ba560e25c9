"""Artifacts and storage areas in SQLite: how their rows are written, checked and looked up. Bytes lie elsewhere."""

# ruff: noqa: S608 - the column lists are our own, values are always bound
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
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
from paddock.rules.values import replace
from paddock.storage.sqlite import engine
from paddock.storage.sqlite.automations import JOB_WRITES
from paddock.storage.sqlite.connection import Cursor
from paddock.storage.sqlite.deliveries import DELIVERY_WRITES
from paddock.storage.sqlite.keeping import FORGETTING
from paddock.storage.sqlite.people import PEOPLE_WRITES
from paddock.storage.sqlite.reader import Reader
from paddock.storage.sqlite.rows import DROP_STATE, SET_STATE
from paddock.storage.sqlite.sessions import SESSION_WRITES

ARTIFACT = (
    "artifact_id, workspace_id, user_id, conversation_id, thread_id, run_id, agent_id, runner_id, source, "
    "artifact_type, mime_type, name, size, sha256, published, created_at, expires_at, metadata"
)
STORED = "area_key, key, sha256, size, updated_at"
_artifact_values = attrgetter(*ARTIFACT.split(", "))
_stored_values = attrgetter(*STORED.split(", "))

_SET_ARTIFACT = f"""
insert into artifacts ({ARTIFACT}) values ({", ".join("?" * len(ARTIFACT.split(", ")))})
on conflict (artifact_id) do update set conversation_id = excluded.conversation_id, thread_id = excluded.thread_id,
  published = excluded.published, expires_at = excluded.expires_at"""
_SET_STORED = f"""
insert into storage ({STORED}) values (?, ?, ?, ?, ?)
on conflict (area_key, key) do update
  set sha256 = excluded.sha256, size = excluded.size, updated_at = excluded.updated_at"""
_ARTIFACT_BYTES = "select total(size) from artifacts where workspace_id = ?"
_UPLOADED_BYTES = "select total(size) from artifacts where workspace_id = ? and user_id = ? and source = 'platform'"
_ATTACH = """
update artifacts set conversation_id = ?2, published = 1, expires_at = ?3, thread_id = ?4
 where artifact_id = ?1 and conversation_id is null"""
_STORED_BYTES = "select total(size) from storage where area_key = ?"
_IN_USE = """
select value from json_each(?) where exists (select 1 from artifacts where sha256 = value)
                                  or exists (select 1 from storage where sha256 = value)"""

# --- writing ---------------------------------------------------------------------------------------------------------


def _write_artifact(cursor: Cursor, row: ArtifactRow) -> None:
    cursor.execute(_SET_ARTIFACT, _artifact_values(row))


def _attach_artifact(cursor: Cursor, row: ArtifactAttached) -> None:
    cursor.execute(_ATTACH, (row.artifact_id, row.conversation_id, row.expires_at, row.subthread_id))


def _drop_artifact(cursor: Cursor, row: ArtifactGone) -> None:
    cursor.execute("delete from artifacts where artifact_id = ?", (row.artifact_id,))


def _write_stored(cursor: Cursor, row: StorageRow) -> None:
    if row.sha256 is None:
        cursor.execute("delete from storage where area_key = ? and key = ?", (row.area_key, row.key))
    else:
        cursor.execute(_SET_STORED, _stored_values(row))


def _check_artifacts(cursor: Cursor, cap: ArtifactsCap) -> None:
    check_cap(int(cursor.execute(_ARTIFACT_BYTES, (cap.workspace_id,)).fetchone()[0]), cap)


def _check_uploads(cursor: Cursor, cap: UploadsCap) -> None:
    check_cap(int(cursor.execute(_UPLOADED_BYTES, (cap.workspace_id, cap.user_id)).fetchone()[0]), cap)


def _check_stored(cursor: Cursor, cap: StorageCap) -> None:
    check_cap(int(cursor.execute(_STORED_BYTES, (cap.area_key,)).fetchone()[0]), cap)


WRITES: Mapping[type, Callable[[Cursor, Any], None]] = {
    ArtifactRow: _write_artifact,
    ArtifactAttached: _attach_artifact,
    ArtifactGone: _drop_artifact,
    StorageRow: _write_stored,
    ArtifactsCap: _check_artifacts,
    UploadsCap: _check_uploads,
    StorageCap: _check_stored,
    **SESSION_WRITES,
    **FORGETTING,
    **PEOPLE_WRITES,
    **JOB_WRITES,
    **DELIVERY_WRITES,
    **engine.WRITES,
}
"""Written one by one, in order. A condition that does not hold raises, and its work is undone alone."""


def set_if_expected(cursor: Cursor, row: StateRow) -> None:
    """Compare and set one value of state; what was written before in this transaction counts."""
    sql = "select value from state where scope_key = ? and key = ?"
    found = cursor.execute(sql, (row.scope_key, row.key)).fetchone()
    check_version(row.expected, found[0] if found else None, row.key)
    if row.value is None:
        cursor.execute(DROP_STATE, (row.scope_key, row.key))
    else:
        cursor.execute(SET_STATE, (row.scope_key, row.key, row.value, row.updated_at))


# --- looking up ------------------------------------------------------------------------------------------------------


def _artifact(found: Any) -> ArtifactRow:
    row = ArtifactRow(*found)
    return replace(row, published=bool(row.published))


class KeptReads(ABC):
    """The part of the store that looks these rows up."""

    @property
    @abstractmethod
    def _reader(self) -> Reader: ...

    async def artifact(self, artifact_id: str) -> ArtifactRow | None:
        found = self._reader.one(f"select {ARTIFACT} from artifacts where artifact_id = ?", (artifact_id,))
        return _artifact(found) if found else None

    async def artifacts_of(self, conversation_id: str, *, limit: int = 500) -> Sequence[ArtifactRow]:
        sql = f"select {ARTIFACT} from artifacts where conversation_id = ? order by artifact_id limit ?"
        return [_artifact(found) for found in self._reader.all(sql, (conversation_id, limit))]

    async def expired_artifacts(self, now: float, *, limit: int = 500) -> Sequence[ArtifactRow]:
        sql = f"select {ARTIFACT} from artifacts where expires_at <= ? order by expires_at, artifact_id limit ?"
        return [_artifact(found) for found in self._reader.all(sql, (now, limit))]

    async def artifact_bytes(self, workspace_id: str) -> int:
        return int(self._reader.one(_ARTIFACT_BYTES, (workspace_id,))[0])

    async def blobs_in_use(self, hashes: Sequence[str]) -> frozenset[str]:
        return frozenset(found[0] for found in self._reader.all(_IN_USE, (json_list(hashes),)))

    async def stored(self, area_key: str, key: str) -> StorageRow | None:
        sql = f"select {STORED} from storage where area_key = ? and key = ?"
        found = self._reader.one(sql, (area_key, key))
        return StorageRow(*found) if found else None

    async def stored_keys(self, area_key: str, *, prefix: str = "", after: str = "", limit: int = 100) -> Sequence[str]:
        sql, values = "select key from storage where area_key = ? and key >= ? and key > ?", [area_key, prefix, after]
        if (until := after_prefix(prefix)) is not None:
            sql, values = f"{sql} and key < ?", [*values, until]
        return [found[0] for found in self._reader.all(f"{sql} order by key limit ?", (*values, limit))]

    async def stored_bytes(self, area_key: str) -> int:
        return int(self._reader.one(_STORED_BYTES, (area_key,))[0])

    async def stored_before(self, key_prefix: str, time: float, *, limit: int = 500) -> Sequence[StorageRow]:
        sql = f"""
        select {STORED} from storage where area_key >= ? and area_key < ? and updated_at < ?
         order by area_key, key limit ?"""
        values = (key_prefix, after_prefix(key_prefix), time, limit)
        return [StorageRow(*found) for found in self._reader.all(sql, values)]


def json_list(texts: Sequence[str]) -> str:
    return "[" + ", ".join(f'"{text}"' for text in texts if text.isalnum()) + "]"
