"""Recovery when a host starts, and making its agents ready."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from paddock.compose.tasks import Tasks
from paddock.host.agents.agents import Agents
from paddock.host.calls.tools import ToolCalls
from paddock.host.cluster.peers import Peers
from paddock.host.people.approvals import Approvals
from paddock.host.people.principals import HOME
from paddock.host.runs.runs import Runs
from paddock.host.session.sessions import Sessions
from paddock.rules.cluster.leases import RESTARTED, WHY

log = structlog.get_logger("paddock.house")

CHOSEN = ("file", "api")
"""Origins of agents that somebody wrote down."""
LOOK_SECONDS = 1.0
"""How often the agents file and the list of installed plugins are looked at."""


class Recovery:
    """Brings what has no owner any more to its end."""

    def __init__(
        self,
        *,
        sessions: Sessions,
        tool_calls: ToolCalls,
        approvals: Approvals,
        peers: Peers | None,
        tasks: Tasks,
    ) -> None:
        self._sessions = sessions
        self._tool_calls = tool_calls
        self._approvals = approvals
        self._peers = peers
        self._tasks = tasks

    async def end_interrupted_runs(self) -> None:
        interrupted = await self._recover()
        if interrupted:
            text = "runs of an earlier start were brought to their end"
            log.info(text, action="house.recover", sessions=interrupted)

    async def settle_calls(self) -> None:
        """Settle calls of tools and actions on platforms that were under way when the host ended.

        Where several hosts are, one of them does it now and then, whoever took the sessions over.
        """
        if self._peers is None:
            await self._tool_calls.settle()
            await self._approvals.recover()
            self._tasks.spawn(self._tool_calls.keep_settling())

    async def _recover(self) -> int:
        if self._peers is None:
            return await self._sessions.recover(RESTARTED, WHY[RESTARTED])
        await self._peers.start()
        if self._peers.bus_is_away():
            text = "the bus does not answer, so what other hosts say comes late; `paddock doctor` asks for it"
            log.warning(text, action="house.bus")
        self._tasks.spawn(self._peers.keep_beating())
        self._tasks.spawn(self._peers.keep_answering())
        return await self._peers.take_over()


class WarmUp:
    """Learns what the agents' runners ask for before the first run needs it."""

    def __init__(self, agents: Agents, runs: Runs) -> None:
        self._agents = agents
        self._runs = runs

    async def prepare(self) -> None:
        """Only those somebody chose, and the one that answers when nobody is named: the others' processes start when
        they are called."""
        first = self._agents.default_agent_id
        for binding in (one for one in self._agents.list(HOME) if one.origin in CHOSEN or one.agent_id == first):
            await self._runs.prepare(binding.agent_id, HOME)
            if refusal := self._runs.authority.refusal(binding.agent_id, HOME):
                about = {"agent": binding.agent_id, "runner_id": binding.runner_id, "reason": refusal.for_operators}
                log.warning("an agent cannot answer", action="house.warm_up", **about)

    async def keep_looking(self, look: Callable[[], Awaitable[bool]]) -> None:
        """For as long as the host runs. When a look took something up, the agents are made ready for it."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if await look():
                await self.prepare()
