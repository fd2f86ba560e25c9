"""Agents that were made over the API, kept beside everything else."""

from collections.abc import Sequence
from typing import Protocol

from paddock.rules.rows.rows import AgentRow


class AgentRecords(Protocol):
    """They are written like other rows, by `Records.write`; one with an empty body is taken away."""

    async def stored_agents(self) -> Sequence[AgentRow]:
        """All of them, of every workspace, in order of workspace and name."""
        ...

    async def stored_agent(self, workspace_id: str, agent_id: str) -> AgentRow | None: ...
