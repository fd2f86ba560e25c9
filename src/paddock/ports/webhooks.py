"""How something is handed to somebody else's server."""

from collections.abc import Mapping
from typing import Protocol

from paddock.rules.values import Value


class Posted(Value, frozen=True):
    """What came of it. Without a status nobody answered, and `problem` says why."""

    status: int | None
    problem: str = ""
    body: bytes = b""
    """The beginning of the answer."""
    retry_after: float | None = None

    @property
    def ok(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


class Webhooks(Protocol):
    async def post(self, url: str, body: bytes, headers: Mapping[str, str], *, seconds: float) -> Posted:
        """Send it once; never raises for what the other side does, ends within the time."""
        ...

    async def close(self) -> None: ...
