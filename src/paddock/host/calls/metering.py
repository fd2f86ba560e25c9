"""Metering of models: checks budgets before a call and records usage after it, however it ends.

A call of a run that is not answered at once is recorded while it is under way, without being waited for: if the host
dies, the record says that it was made (`settling.py` ends it). A quick one costs no commit of its own.

Usage reported by the provider is recorded as it is. Where it reports none (the stream was stopped early, a try was
lost before another one, or the server does not count) usage is estimated, and the record is marked so.

Budgets rest on the stored usage. Calls of this host count at once, those of other hosts within half a minute. A running
call costs nothing until it ends, so running calls together can pass a budget.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext
from dataclasses import KW_ONLY, dataclass

from paddock.host.ids import new_id
from paddock.ports import CallRecords
from paddock.ports.models import ModelAnswer, ModelInfo, ModelPiece, Models, Usage
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.people import Budget, Exceeded, Payer, about_tokens_in, cost_of, day_of, over_budget
from paddock.rules.rows.calls import ModelUsageRow

BELIEVED_SECONDS = 30.0
UNDER_WAY_SECONDS = 0.05
"""A call that takes longer is on record while it is under way."""
MAX_ACCOUNTS = 10_000
Who = tuple[str, str | None]
"""A workspace and a user of it; None as the user stands for the whole workspace."""


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
        """Check the budgets before a call and count it while it runs. Raises HostError.

        `free`: the call costs no money. `at_once`: it counts against the number of calls at the same time.
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
        """Count a call that has ended and whose row is written soon."""
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
        # rows of calls that ended a moment ago may not be stored yet: the higher count is right
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


STARTED, CANCELLED, OK = "started", "cancelled", "ok"
EMBED = "embed"
NOT_COUNTED = Usage()


class Meter:
    """Usage of one model call, and its row: while it is under way, and when it has ended."""

    def __init__(self, payer: Payer, info: ModelInfo, operation: str, clock: Callable[[], float]) -> None:
        self._payer = payer
        self._info = info
        self._operation = operation
        self._clock = clock
        self._began = clock()
        self._call_id = new_id()
        self._output: list[str] = []
        self._unheard: list[str] = []
        self._lost = 0
        self.prompt_tokens: Callable[[], int] = int
        """Estimates the tokens of the prompt; called only when the provider reported no usage."""
        self.usage: Usage | None = None
        self.answered_by = ""
        self.prices = info.prices
        self.result = CANCELLED

    def add(self, output: ModelPiece | ModelAnswer) -> None:
        if output.usage is not None:
            self.usage = output.usage
        if output.content:
            self._output.append(output.content)
        if output.tool_calls:
            self._output += [call.arguments for call in output.tool_calls]
        if isinstance(output, ModelPiece) and output.reasoning:
            self._output.append(output.reasoning)

    def lost(self, unheard: Sequence[str]) -> None:
        """A question went out and was not answered to its end: its provider worked and did not count."""
        self._lost += 1
        self._unheard += unheard

    def begun(self) -> ModelUsageRow:
        """The row of a call that is under way, with an estimate of what was asked."""
        asked = self.prompt_tokens()
        return self._row(STARTED, Usage(asked, 0, asked), estimated=True, ended_at=self._began)

    def row(self) -> ModelUsageRow:
        uncounted = self._uncounted
        estimated = uncounted > 0
        used = self._estimate(uncounted) if estimated else self.usage or NOT_COUNTED
        return self._row(self.result, used, estimated=estimated, ended_at=self._clock())

    def _row(self, result: str, used: Usage, *, estimated: bool, ended_at: float) -> ModelUsageRow:
        by = self._payer
        return ModelUsageRow(
            call_id=self._call_id,
            run_id=by.run_id,
            session_id=by.session_id,
            workspace_id=by.workspace_id,
            user_id=by.user_id,
            agent_id=by.agent_id,
            model_id=self._info.model_id,
            answered_by=self.answered_by or self._info.model_id,
            operation=self._operation,
            result=result,
            prompt_tokens=used.prompt_tokens,
            completion_tokens=used.completion_tokens,
            total_tokens=used.total_tokens,
            cost=self._cost(used),
            started_at=self._began,
            ended_at=ended_at,
            estimated=estimated,
        )

    @property
    def _is_counted(self) -> bool:
        return self.usage is not None and self.usage.total_tokens is not None

    @property
    def _uncounted(self) -> int:
        if self._is_counted:
            return self._lost
        lost = self._lost + (self.result == OK)
        return lost or int(bool(self._output) or self.result == CANCELLED)

    def _estimate(self, uncounted: int) -> Usage:
        known = self.usage if self.usage is not None and self._is_counted else Usage(0, 0, 0)
        asked = uncounted * self.prompt_tokens()
        output = about_tokens_in(*self._unheard, *(() if self._is_counted else self._output))
        total = (known.total_tokens or 0) + asked + output
        return Usage((known.prompt_tokens or 0) + asked, (known.completion_tokens or 0) + output, total)

    def _cost(self, used: Usage) -> float | None:
        if self.prices is None:
            return None
        prompt, completion = self.prices.prompt, self.prices.completion
        return cost_of(used.prompt_tokens, used.completion_tokens, prompt_price=prompt, completion_price=completion)


@dataclass(eq=False)
class Metering:
    models: Models
    _: KW_ONLY
    note: Callable[[ModelUsageRow], None]
    clock: Callable[[], float]
    budgets: Budgets | None = None

    @asynccontextmanager
    async def around(self, payer: Payer, info: ModelInfo, operation: str) -> AsyncGenerator[Meter]:
        """Check the budgets before a call, and record its usage however it ends. Raises HostError."""
        async with self._allowed(payer, info, operation):
            with self._noted(payer, info, operation) as meter:
                yield meter

    def answered(self, meter: Meter, payer: Payer, name: str) -> None:
        """Note that the model `name` answered in place of the one asked; its prices apply."""
        meter.answered_by = name
        other = self.models.find(payer.workspace_id, name)
        meter.prices = other.prices if other else None

    def _allowed(self, payer: Payer, info: ModelInfo, operation: str) -> AbstractAsyncContextManager[None]:
        if self.budgets is None:
            return nullcontext()
        free = self.models.is_free(payer.workspace_id, info.model_id)
        return self.budgets.one_call(payer, free=free, at_once=operation != EMBED)

    @contextmanager
    def _noted(self, payer: Payer, info: ModelInfo, operation: str) -> Generator[Meter]:
        meter = Meter(payer, info, operation, self.clock)
        begun = self._soon_begun(meter) if payer.run_id else None
        try:
            yield meter
            meter.result = OK
        except HostError as error:
            meter.result = str(error.code)
            raise
        except Exception:
            meter.result = str(ErrorCode.RUNTIME_ERROR)
            raise
        finally:
            if begun is not None:
                begun.cancel()
            self._end(meter.row())

    def _soon_begun(self, meter: Meter) -> asyncio.TimerHandle:
        note = self.note
        return asyncio.get_running_loop().call_later(UNDER_WAY_SECONDS, lambda: note(meter.begun()))

    def _end(self, row: ModelUsageRow) -> None:
        self.note(row)
        if self.budgets is not None:
            self.budgets.used(row)
