"""Records of an installation: API keys, agents made over the API, shared plugins, and the mark of the secret that was
last used.

The last word on an agent or a plugin counts; an empty body takes it away.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import partial

from paddock.ports import ApiKeyRow
from paddock.rules.rows.rows import AgentRow, Apart, AuditRow, PluginRow
from paddock.storage.tables.statements import (
    Change,
    HasEngine,
    Query,
    Write,
    ask,
    in_turn,
    is_there,
    just,
    many,
    one,
    put,
    several,
    value,
)
from paddock.storage.tables.table import Gone, Table

KEYS = Table("api_keys", ApiKeyRow)
AGENTS = Table(
    "agents",
    AgentRow,
    key=("workspace_id", "agent_id"),
    again=("body", "updated_at", "updated_by"),
    gone=Gone("body", b""),
)
WRITES: Mapping[type, Write] = {
    PluginRow: in_turn(
        put("plugins", PluginRow, key="plugin", again=("version", "sha256", "body", "installed_at", "installed_by")),
        Change("delete from plugins where plugin = :plugin and length(body) = 0"),
    )
}
_LIVE = Query(value, "select key_id from api_keys where key_id = any(:key_ids::text[]) and revoked_at is null")
_REVOKE = "update api_keys set revoked_at = coalesce(revoked_at, :at) where key_id = :key_id"
_SET_MARK = "insert into cluster_secret values (1, :mark) on conflict (one) do update set mark = excluded.mark"
_HASHES = Query(several, "select plugin, sha256 from plugins")


class DefinitionReads(HasEngine):
    """The part of the store that looks these up, and gives out and revokes keys."""

    async def write(self, rows: Sequence[Apart | ApiKeyRow]) -> None: ...

    async def add_key(self, row: ApiKeyRow) -> None:
        await self.write([row])

    find_key = one(ApiKeyRow, "select {columns} from api_keys where key_hash = :key_hash and revoked_at is null")

    async def live_keys(self, key_ids: Sequence[str]) -> Collection[str]:
        return set(await self.engine.all(_LIVE, key_ids=list(key_ids)))

    any_key = one(is_there, "select 1 from api_keys limit 1", otherwise=False)
    api_keys = many(
        ApiKeyRow,
        """
select {columns} from api_keys
 where (:workspace_id::text is null or workspace_id = :workspace_id) and (:user_id::text is null or user_id = :user_id)
 order by created_at desc limit :limit""",
        user_id=None,
        limit=1000,
    )

    async def revoke_key(self, key_id: str, at: float, audit_row: AuditRow) -> None:
        await self.engine.do(partial(just, ask(_REVOKE, key_id=key_id, at=at)), [audit_row])

    secret_mark = one(value, "select mark from cluster_secret")

    async def set_secret_mark(self, mark: str) -> None:
        await self.engine.do(partial(just, ask(_SET_MARK, mark=mark)))

    stored_agents = many(AgentRow, "select {columns} from agents order by workspace_id, agent_id")
    stored_agent = one(
        AgentRow, "select {columns} from agents where workspace_id = :workspace_id and agent_id = :agent_id"
    )

    async def shared_plugins(self) -> Mapping[str, str]:
        return dict(await self.engine.all(_HASHES))

    shared_plugin = one(PluginRow, "select {columns} from plugins where plugin = :plugin")
