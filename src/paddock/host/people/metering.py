"""Metering of models: checks budgets before a call and records usage after it, however it ends.

What a provider counted is taken as it is. What nobody counted (the stream was stopped before its end, or the server
counts nothing) is estimated, and the record says so.
"""

from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext

from paddock.host.ids import new_id
from paddock.host.people.budgets import Budgets
from paddock.ports.models import ModelAnswer, ModelInfo, ModelPiece, Models, Usage
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.people.model_usage import Payer, about_tokens_in, cost_of
from paddock.rules.rows.calls import ModelUsageRow

CANCELLED, OK = "cancelled", "ok"
EMBED = "embed"
NOT_COUNTED = Usage()


class Meter:
    """Usage of one model call, recorded once when it ends."""

    def __init__(self, payer: Payer, info: ModelInfo, operation: str, clock: Callable[[], float]) -> None:
        self._payer = payer
        self._info = info
        self._operation = operation
        self._clock = clock
        self._began = clock()
        self._said: list[str] = []
        self.asked: Callable[[], int] = int
        """How many tokens the question had, about; worked out only when nobody else counted."""
        self.usage: Usage | None = None
        self.answered_by = ""
        self.prices = info.prices
        self.result = CANCELLED

    def hear(self, said: ModelPiece | ModelAnswer) -> None:
        if said.usage is not None:
            self.usage = said.usage
        if said.content:
            self._said.append(said.content)
        if said.tool_calls:
            self._said += [call.arguments for call in said.tool_calls]
        if isinstance(said, ModelPiece) and said.reasoning:
            self._said.append(said.reasoning)

    def row(self) -> ModelUsageRow:
        by, used = self._payer, self.usage or NOT_COUNTED
        estimated = used.total_tokens is None and self._was_heard
        if estimated:
            used = self._estimate()
        return ModelUsageRow(
            call_id=new_id(),
            run_id=by.run_id,
            session_id=by.session_id,
            workspace_id=by.workspace_id,
            user_id=by.user_id,
            agent_id=by.agent_id,
            model_id=self._info.model_id,
            answered_by=self.answered_by or self._info.model_id,
            operation=self._operation,
            result=self.result,
            prompt_tokens=used.prompt_tokens,
            completion_tokens=used.completion_tokens,
            total_tokens=used.total_tokens,
            cost=self._cost(used),
            started_at=self._began,
            ended_at=self._clock(),
            estimated=estimated,
        )

    @property
    def _was_heard(self) -> bool:
        """True when the model did some work: it answered, or was stopped while it was about to."""
        return bool(self._said) or self.result in {OK, CANCELLED}

    def _estimate(self) -> Usage:
        asked, said = self.asked(), about_tokens_in(*self._said)
        return Usage(asked, said, asked + said)

    def _cost(self, used: Usage) -> float | None:
        if self.prices is None:
            return None
        prompt, completion = self.prices.prompt, self.prices.completion
        return cost_of(used.prompt_tokens, used.completion_tokens, prompt_price=prompt, completion_price=completion)


class Metering:
    def __init__(
        self,
        models: Models,
        *,
        note: Callable[[ModelUsageRow], None],
        clock: Callable[[], float],
        budgets: Budgets | None = None,
    ) -> None:
        self._models = models
        self._note = note
        self._clock = clock
        self._budgets = budgets

    @asynccontextmanager
    async def around(self, payer: Payer, info: ModelInfo, operation: str) -> AsyncGenerator[Meter]:
        """Around one call: within the budgets, and on record however it ends."""
        async with self._allowed(payer, info, operation):
            with self._noted(payer, info, operation) as meter:
                yield meter

    def answered(self, meter: Meter, payer: Payer, name: str) -> None:
        """Note that a fallback model answered; its prices apply."""
        meter.answered_by = name
        other = self._models.find(payer.workspace_id, name)
        meter.prices = other.prices if other else None

    def _allowed(self, payer: Payer, info: ModelInfo, operation: str) -> AbstractAsyncContextManager[None]:
        if self._budgets is None:
            return nullcontext()
        free = self._models.is_free(payer.workspace_id, info.model_id)
        return self._budgets.one_call(payer, free=free, at_once=operation != EMBED)

    @contextmanager
    def _noted(self, payer: Payer, info: ModelInfo, operation: str) -> Generator[Meter]:
        meter = Meter(payer, info, operation, self._clock)
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
            self._end(meter.row())

    def _end(self, row: ModelUsageRow) -> None:
        self._note(row)
        if self._budgets is not None:
            self._budgets.used(row)
