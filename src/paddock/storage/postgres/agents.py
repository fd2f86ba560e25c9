"""Agents that were made over the API: the last word on one is all that counts, and an empty body takes it away."""

from collections.abc import Sequence

from paddock.rules.rows import AgentRow
from paddock.storage.postgres.reader import HasReader
from paddock.storage.postgres.tables import last_word

AGENTS = last_word(
    "agents",
    "workspace_id text, agent_id text, body bytes, updated_at float, updated_by text",
    key=("workspace_id", "agent_id"),
    gone="body = ''",
)
_ALL = f"select {', '.join(AGENTS.names)} from agents order by workspace_id, agent_id"  # noqa: S608 - our own columns


class AgentReads(HasReader):
    """Agents, looked up."""

    async def stored_agents(self) -> Sequence[AgentRow]:
        return [AgentRow(*found) for found in await self.reader.all(_ALL)]
