"""State: small values that runners keep with the host. The last word on a key is all that counts."""

from collections.abc import Mapping, Sequence

from paddock.ports import ScopeState
from paddock.storage.postgres.reader import HasReader
from paddock.storage.postgres.tables import last_word
from paddock.storage.postgres.texts import escaped_column
from paddock.storage.room import scopes_in

STATE = last_word(
    "state", "scope_key text, key text, value bytes, updated_at float", key=("scope_key", "key"), gone="value is null"
)

_SCOPES = """
select scope_key, key, length(value), case when length(value) <= $2 then value end
  from state where scope_key = any($1::text[]) order by scope_key, key"""
_SIZE = "select coalesce(sum(length(value)), 0)::bigint from state where scope_key = $1"


class StateReads(HasReader):
    """State, looked up."""

    async def state(self, scope_key: str, key: str) -> bytes | None:
        found = await self.reader.one("select value from state where scope_key = $1 and key = $2", scope_key, key)
        return found[0] if found else None

    async def state_snapshot(self, scope_keys: Sequence[str], *, max_bytes: int) -> Mapping[str, ScopeState]:
        return scopes_in(await self.reader.all(_SCOPES, escaped_column(scope_keys), max_bytes), scope_keys, max_bytes)

    async def state_size(self, scope_key: str) -> int:
        return (await self.reader.one(_SIZE, scope_key))[0]
