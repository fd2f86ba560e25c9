"""The part of the memory store that knows artifacts and storage areas. Rows only; their bytes lie elsewhere."""

from collections.abc import Iterable, Sequence
from itertools import islice

from paddock.rules.access.caps import check_cap
from paddock.rules.errors import HostError
from paddock.rules.rows.forgetting import SessionGone
from paddock.rules.rows.rows import (
    ArtifactAttached,
    ArtifactGone,
    ArtifactRow,
    ArtifactsCap,
    Kept,
    StorageCap,
    StorageRow,
    UploadsCap,
)
from paddock.rules.values import replace

UPLOADED = "platform"


class MemoryKept:
    def __init__(self) -> None:
        super().__init__()
        self._artifacts: dict[str, ArtifactRow] = {}
        self._stored: dict[tuple[str, str], StorageRow] = {}

    async def artifact(self, artifact_id: str) -> ArtifactRow | None:
        return self._artifacts.get(artifact_id)

    async def artifacts_of(self, conversation_id: str, *, limit: int = 500) -> Sequence[ArtifactRow]:
        mine = (row for _, row in sorted(self._artifacts.items()) if row.conversation_id == conversation_id)
        return list(islice(mine, limit))

    async def expired_artifacts(self, now: float, *, limit: int = 500) -> Sequence[ArtifactRow]:
        over = [(row.expires_at, row.artifact_id) for row in self._artifacts.values() if row.expires_at is not None]
        return [self._artifacts[name] for at, name in sorted(over) if at <= now][:limit]

    async def artifact_bytes(self, workspace_id: str) -> int:
        return sum(row.size for row in self._artifacts.values() if row.workspace_id == workspace_id)

    async def blobs_in_use(self, hashes: Sequence[str]) -> frozenset[str]:
        rows: Iterable[ArtifactRow | StorageRow] = [*self._artifacts.values(), *self._stored.values()]
        return frozenset(hashes) & {row.sha256 for row in rows if row.sha256 is not None}

    async def stored(self, area_key: str, key: str) -> StorageRow | None:
        return self._stored.get((area_key, key))

    async def stored_keys(self, area_key: str, *, prefix: str = "", after: str = "", limit: int = 100) -> Sequence[str]:
        mine = sorted(key for area, key in self._stored if area == area_key)
        return [key for key in mine if key.startswith(prefix) and key > after][:limit]

    async def stored_bytes(self, area_key: str) -> int:
        return sum(row.size for row in self._stored.values() if row.area_key == area_key)

    async def stored_before(self, key_prefix: str, time: float, *, limit: int = 500) -> Sequence[StorageRow]:
        old = (r for _, r in sorted(self._stored.items()) if r.area_key.startswith(key_prefix) and r.updated_at < time)
        return list(islice(old, limit))

    def _write_kept(self, rows: Sequence[Kept]) -> None:
        """All or none: a condition that fails puts everything back."""
        before = dict(self._artifacts), dict(self._stored)
        try:
            for row in rows:
                self._write_one(row)
        except HostError:
            self._artifacts, self._stored = before
            raise

    def _write_one(self, row: Kept) -> None:
        match row:
            case ArtifactRow():
                self._artifacts[row.artifact_id] = row
            case ArtifactAttached():
                self._attach(row)
            case ArtifactGone():
                self._artifacts.pop(row.artifact_id, None)
            case StorageRow(sha256=None):
                self._stored.pop((row.area_key, row.key), None)
            case StorageRow():
                self._stored[row.area_key, row.key] = row
            case ArtifactsCap():
                mine = (other.size for other in self._artifacts.values() if other.workspace_id == row.workspace_id)
                check_cap(sum(mine), row)
            case UploadsCap():
                check_cap(sum(other.size for other in self._artifacts.values() if _is_upload_of(other, row)), row)
            case StorageCap():
                check_cap(sum(r.size for r in self._stored.values() if r.area_key == row.area_key), row)
            case SessionGone():
                self._artifacts = {n: r for n, r in self._artifacts.items() if r.conversation_id != row.session_id}
            case _:
                pass  # not about bytes: written beside the log

    def _attach(self, row: ArtifactAttached) -> None:
        found = self._artifacts.get(row.artifact_id)
        if found is not None and found.conversation_id is None:
            self._artifacts[row.artifact_id] = replace(
                found,
                conversation_id=row.conversation_id,
                thread_id=row.subthread_id,
                published=True,
                expires_at=row.expires_at,
            )


def _is_upload_of(row: ArtifactRow, cap: UploadsCap) -> bool:
    return (row.workspace_id, row.user_id, row.source) == (cap.workspace_id, cap.user_id, UPLOADED)
