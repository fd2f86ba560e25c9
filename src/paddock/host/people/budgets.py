"""Keeps count of what users and workspaces use of the models, and refuses when it is too much.

The record is the truth; what this host adds to it is counted at once, what other hosts add is seen within half a
minute. A call that is under way costs nothing yet, so a budget can be passed by the calls that were under way.
"""

from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

from paddock.ports import CallRecords
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.people.model_usage import Budget, Exceeded, Payer, day_of, over_budget
from paddock.rules.rows.calls import ModelUsageRow

BELIEVED_SECONDS = 30.0
MAX_ACCOUNTS = 10_000
Who = tuple[str, str | None]
"""A workspace, and a user of it or None for all of it."""


@dataclass(slots=True)
class _Account:
    day: float
    read_at: float
    tokens: int
    cost: float


class Budgets:
    def __init__(self, records: CallRecords, *, user: Budget, workspace: Budget, clock: Callable[[], float]) -> None:
        self._records = records
        self._user = user
        self._workspace = workspace
        self._clock = clock
        self._accounts: dict[Who, _Account] = {}
        self._under_way: dict[Who, int] = {}

    @asynccontextmanager
    async def one_call(self, payer: Payer, *, free: bool = False, at_once: bool = True) -> AsyncGenerator[None]:
        """Around a call: refused before it begins, counted while it is under way.

        `free`: it costs nothing, so money is no reason to refuse it. `at_once`: it counts among those under way.
        """
        accounts = [((payer.workspace_id, payer.user_id), self._user), ((payer.workspace_id, None), self._workspace)]
        for who, budget in accounts:
            if (exceeded := await self._check(who, budget.for_call(free=free, at_once=at_once))) is not None:
                raise _refusal(exceeded, self._clock())
        with self._counted([who for who, _ in accounts] if at_once else ()):
            yield

    @contextmanager
    def _counted(self, accounts: Sequence[Who]) -> Generator[None]:
        for who in accounts:
            self._under_way[who] = self._under_way.get(who, 0) + 1
        try:
            yield
        finally:
            for who in accounts:
                self._under_way[who] -= 1
                if not self._under_way[who]:
                    del self._under_way[who]

    def used(self, row: ModelUsageRow) -> None:
        """A call has ended: its row will be on record shortly."""
        for who in ((row.workspace_id, row.user_id), (row.workspace_id, None)):
            if (account := self._accounts.get(who)) is not None and row.started_at >= account.day:
                account.tokens += row.total_tokens or 0
                account.cost += row.cost or 0.0

    async def _check(self, who: Who, budget: Budget) -> Exceeded | None:
        now = self._clock()
        account = await self._account(who, now) if budget.counts else _Account(0, 0, 0, 0.0)
        return over_budget(
            f"the user {who[1]}" if who[1] is not None else f"the workspace {who[0]}",
            budget,
            tokens=account.tokens,
            cost=account.cost,
            at_once=self._under_way.get(who, 0),
            now=now,
        )

    async def _account(self, who: Who, now: float) -> _Account:
        known = self._accounts.get(who)
        if known is not None and known.day == day_of(now) and now - known.read_at < BELIEVED_SECONDS:
            return known
        tokens, cost = await self._records.spent_on(day_of(now), *who)
        if len(self._accounts) >= MAX_ACCOUNTS:
            self._accounts.clear()
        most = known if known is not None and known.day == day_of(now) else _Account(0, 0, 0, 0.0)
        # rows of calls that ended a moment ago may not be on record yet: the higher count is the right one
        account = _Account(day_of(now), now, max(tokens, most.tokens), max(cost, most.cost))
        self._accounts[who] = account
        return account


def _refusal(exceeded: Exceeded, now: float) -> HostError:
    if exceeded.resets_at is None:
        text = f"{exceeded.text}; try again when one has ended"
        return HostError(ErrorCode.RATE_LIMITED, text, retryable=True, details={"retry_after": 1.0})
    wait = round(exceeded.resets_at - now)
    text = f"{exceeded.text}; there is more in {wait // 3600} h {wait % 3600 // 60} min, or when the operator raises it"
    return HostError(ErrorCode.RATE_LIMITED, text, details={"retry_after": float(wait), "budget": True})
