"""API keys: only their hashes are stored."""

from collections.abc import Collection, Sequence

from paddock.ports import ApiKeyRow
from paddock.storage.postgres.reader import HasReader
from paddock.storage.postgres.tables import insert

# ruff: noqa: S608 - the column list is our own, values are always bound
KEY = "key_id, key_hash, workspace_id, user_id, role, created_at, revoked_at"
KEYS = insert(
    "api_keys",
    "key_id text, key_hash bytes, workspace_id text, user_id text, role text, created_at float, revoked_at float",
)


class KeyReads(HasReader):
    """Keys, looked up."""

    async def find_key(self, key_hash: bytes) -> ApiKeyRow | None:
        found = await self.reader.one(
            f"select {KEY} from api_keys where key_hash = $1 and revoked_at is null", key_hash
        )
        return ApiKeyRow(*found) if found else None

    async def live_keys(self, key_ids: Sequence[str]) -> Collection[str]:
        sql = "select key_id from api_keys where key_id = any($1::text[]) and revoked_at is null"
        return {found[0] for found in await self.reader.all(sql, list(key_ids))}

    async def api_keys(
        self, workspace_id: str | None, *, user_id: str | None = None, limit: int = 1000
    ) -> Sequence[ApiKeyRow]:
        where = "($1::text is null or workspace_id = $1) and ($2::text is null or user_id = $2)"
        sql = f"select {KEY} from api_keys where {where} order by created_at desc limit $3"
        return [ApiKeyRow(*found) for found in await self.reader.all(sql, workspace_id, user_id, limit)]

    async def any_key(self) -> bool:
        return await self.reader.one("select 1 from api_keys limit 1") is not None
