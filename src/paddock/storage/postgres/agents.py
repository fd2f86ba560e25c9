"""Agents that were made over the API: the last word on one is all that counts, and an empty body takes it away."""

from collections.abc import Sequence

from paddock.rules.rows.rows import AgentRow
from paddock.storage.postgres.reader import HasReader
from paddock.storage.postgres.tables import last_word

AGENTS = last_word(
    "agents",
    "workspace_id text, agent_id text, body bytes, updated_at float, updated_by text",
    key=("workspace_id", "agent_id"),
    gone="body = ''",
)
_SELECT = f"select {', '.join(AGENTS.names)} from agents"  # noqa: S608 - our own columns
_ALL = f"{_SELECT} order by workspace_id, agent_id"
_ONE = f"{_SELECT} where workspace_id = $1 and agent_id = $2"


class AgentReads(HasReader):
    """Agents, looked up."""

    async def stored_agents(self) -> Sequence[AgentRow]:
        return [AgentRow(*found) for found in await self.reader.all(_ALL)]

    async def stored_agent(self, workspace_id: str, agent_id: str) -> AgentRow | None:
        found = await self.reader.one(_ONE, workspace_id, agent_id)
        return AgentRow(*found) if found else None
