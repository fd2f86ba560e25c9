"""A run as a test sees it: what was said so far, waiting for more, cancelling. Checks what the wire demands."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from paddock_sdk.protocol.results import (
    TERMINAL_TYPES,
    KnownResult,
    MessageCompleted,
    MessageDelta,
    UnknownResult,
    parse_result,
)

PATIENCE_SECONDS = 10.0


class RunResults(list[KnownResult | UnknownResult]):
    """Results of one run, in order."""

    @property
    def text(self) -> str:
        """The answer as a person reads it: whole messages, else the pieces joined."""
        whole = [result.data.message.text for result in self if isinstance(result, MessageCompleted)]
        pieces = [result.data.chunk.text for result in self if isinstance(result, MessageDelta)]
        return "\n".join(whole) if whole else "".join(pieces)

    @property
    def deltas(self) -> list[str]:
        return [result.data.chunk.text for result in self if isinstance(result, MessageDelta)]

    @property
    def types(self) -> list[str]:
        return [result.type for result in self]

    @property
    def terminal(self) -> KnownResult | UnknownResult:
        """How it ended: RunCompleted or RunFailed."""
        return self[-1]


class PretendRun:
    """One run that is going on."""

    def __init__(
        self,
        run_id: str,
        credit: int,
        cancel: Callable[[str], Awaitable[Mapping[str, Any]]],
        give_credit: Callable[[str, int], None],
    ) -> None:
        self.run_id = run_id
        self.said = RunResults()
        self._credit = credit
        self._cancel, self._give_credit = cancel, give_credit
        self._news = asyncio.Event()
        self._broken: AssertionError | None = None

    async def until(self, enough: Callable[[RunResults], bool]) -> RunResults:
        """Wait until what was said satisfies the test, or fail it."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not enough(self.said):
                self._news.clear()
                if self._broken is not None:
                    raise self._broken
                await self._news.wait()
        return self.said

    async def results(self) -> RunResults:
        """Wait for the end, then everything that was said."""
        return await self.until(lambda said: bool(said) and said[-1].type in TERMINAL_TYPES)

    async def cancel(self, reason: str = "user") -> RunResults:
        """Stop it and wait for the plugin's word that it has ended."""
        await self._cancel(reason)
        return self.said

    def add(self, raw: dict[str, Any]) -> KnownResult | UnknownResult | None:
        """One result from the wire; a runner that breaks the rules fails the test that waits."""
        self._news.set()
        try:
            self._check(raw)
            result = parse_result(raw)
        except (AssertionError, ValueError) as error:
            self._broken = AssertionError(f"{raw.get('type')}: {error}")
            return None
        self.said.append(result)
        return result

    def _check(self, raw: dict[str, Any]) -> None:
        assert not (self.said and self.said[-1].type in TERMINAL_TYPES), "a result after the end"
        assert raw["sequence"] == len(self.said) + 1, f"sequence {raw['sequence']} after {len(self.said)} results"
        self._credit -= 1
        assert self._credit >= 0 or raw["type"] in TERMINAL_TYPES, "more results than credit"
        self._credit += 1
        self._give_credit(self.run_id, 1)
