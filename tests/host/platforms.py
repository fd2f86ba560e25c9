"""A platform in memory that does what it is told, and remembers it."""

import asyncio
from collections.abc import Collection

from paddock.ports.platforms import KNOWN_ACTIONS, Performed, PlatformAction
from paddock.rules.access.permissions import RunScope


class MemoryPlatform:
    def __init__(self, offered: Collection[str] = KNOWN_ACTIONS) -> None:
        self.offered = offered
        self.done: list[PlatformAction] = []
        self.answer = Performed(ok=True)
        self.problem: Exception | None = None
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()

    def offers(self, scope: RunScope, action: str) -> bool:
        return action in self.offered

    async def perform(self, action: PlatformAction) -> Performed:
        self.done.append(action)
        await self.may_go_on.wait()
        if self.problem is not None:
            raise self.problem
        return self.answer


EDITOR = {"platform_api": ["message.edit", "message.recall"]}
"""What a runner's manifest asks for that edits messages."""
EDITING_AGENTS = """
default_agent: one
agents:
  one: {runner: "plugin:test/one/default", platform_actions: [message.edit, reaction.add]}
  two: {runner: "plugin:test/two/default"}
"""
"""An agent whose owner lets it edit, and one whose owner said nothing."""
