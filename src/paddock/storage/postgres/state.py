"""State: small values that runners keep with the host. The last word on a key is all that counts."""

from collections.abc import Mapping

from paddock.storage.postgres.reader import HasReader
from paddock.storage.postgres.tables import last_word

STATE = last_word(
    "state", "scope_key text, key text, value bytes, updated_at float", key=("scope_key", "key"), gone="value is null"
)

_SNAPSHOT = """
select key, value from state where scope_key = $1 and length(value) <= $2 order by key"""
_SIZE = "select coalesce(sum(length(value)), 0)::bigint from state where scope_key = $1"


class StateReads(HasReader):
    """State, looked up."""

    async def state(self, scope_key: str, key: str) -> bytes | None:
        found = await self.reader.one("select value from state where scope_key = $1 and key = $2", scope_key, key)
        return found[0] if found else None

    async def state_snapshot(self, scope_key: str, *, max_bytes: int) -> Mapping[str, bytes]:
        values: dict[str, bytes] = {}
        for key, value in await self.reader.all(_SNAPSHOT, scope_key, max_bytes):
            if len(value) <= max_bytes:
                values[key] = value
                max_bytes -= len(value)
        return values

    async def state_size(self, scope_key: str) -> int:
        return (await self.reader.one(_SIZE, scope_key))[0]
