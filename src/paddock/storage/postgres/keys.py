"""API keys: only their hashes are stored."""

from paddock.ports import ApiKeyRow
from paddock.storage.postgres.reader import HasReader
from paddock.storage.postgres.tables import insert

# ruff: noqa: S608 - the column list is our own, values are always bound
KEY = "key_id, key_hash, workspace_id, user_id, role, created_at"
KEYS = insert("api_keys", "key_id text, key_hash bytes, workspace_id text, user_id text, role text, created_at float")


class KeyReads(HasReader):
    """Keys, looked up."""

    async def find_key(self, key_hash: bytes) -> ApiKeyRow | None:
        found = await self.reader.one(f"select {KEY} from api_keys where key_hash = $1", key_hash)
        return ApiKeyRow(*found) if found else None

    async def any_key(self) -> bool:
        return await self.reader.one("select 1 from api_keys limit 1") is not None
