"""State kept between turns: the harness's session, where it worked, what it cost."""

import asyncio
from collections.abc import Collection, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from paddock_runners.toolkit.values import listing, mapping
from paddock_sdk import HostApi, RunContext

SESSION, DIRECTORY, TOTALS = "external.session_id", "external.working_directory", "external.totals"
PAGE, UNREACHABLE = "external.page", "external.unreachable"


class Memory:
    """Of one conversation with one agent. Everything is kept as soon as it is known: a turn may be cut at any time."""

    def __init__(self, ctx: RunContext, api: HostApi) -> None:
        self._api = api
        self._may = ctx.context.available_apis.state
        self._kept: dict[str, Any] = dict(ctx.state.conversation)

    def session(self, directory: Path) -> str | None:
        """The session to go on with: one that was held in this very directory."""
        known, where = self._kept.get(SESSION), self._kept.get(DIRECTORY)
        return known if isinstance(known, str) and known and where == str(directory) else None

    @property
    def has_session(self) -> bool:
        """True when a session is on record, wherever it was held."""
        return bool(self._kept.get(SESSION))

    def keep_directory(self, directory: Path) -> "asyncio.Future[Any]":
        """Begins now, while the harness starts; done when it is kept."""
        return asyncio.gather(self._keep(DIRECTORY, str(directory)))

    def keep_session(self, session_id: str, directory: Path) -> "asyncio.Future[Any]":
        """Begins now; done when it is kept."""
        return asyncio.gather(self._keep(DIRECTORY, str(directory)), self._keep(SESSION, session_id))

    def knows_page(self, page: str) -> bool:
        """True when the session was told exactly this page."""
        return self._kept.get(PAGE) == _digest(page)

    async def keep_page(self, page: str) -> None:
        await self._keep(PAGE, _digest(page))

    async def keep_unreachable(self, servers: Collection[str]) -> bool:
        """Which servers were not reached in this turn; whether one of them was reached in the last."""
        before = listing(self._kept.get(UNREACHABLE))
        if servers or before:
            await self._keep(UNREACHABLE, sorted(servers))
        return any(server not in before for server in servers)

    async def forget_session(self) -> None:
        """It is lost; its counts are of no use for the next, which has to be told everything."""
        await asyncio.gather(self._keep(SESSION, ""), self._keep(TOTALS, {}), self._keep(PAGE, ""))

    async def since_last_turn(self, totals: Mapping[str, float]) -> dict[str, float]:
        """Counts that grow with the session, as what this turn added. A count that shrank began anew."""
        before = mapping(self._kept.get(TOTALS))
        added = {name: _difference(before.get(name), count) for name, count in totals.items()}
        await self._keep(TOTALS, {**before, **totals})
        return added

    async def _keep(self, key: str, value: object) -> None:
        """Said once, also while it is on its way."""
        if self._may and self._kept.get(key) != value:
            self._kept[key] = value
            await self._api.state.set("conversation", key, value)


def _digest(page: str) -> str:
    return sha256(page.encode()).hexdigest()[:32]


def _difference(before: object, now: float) -> float:
    earlier = before if isinstance(before, int | float) and 0 <= before <= now else 0
    return round(now - earlier, 9) if isinstance(now, float) else now - int(earlier)
