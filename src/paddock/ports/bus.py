"""How hosts wake each other. A convenience, never the truth: whatever is lost here is found in the store, later."""

from collections.abc import Callable
from typing import Protocol

Heard = Callable[[bytes], None]


def nobody() -> None:
    """Tell nobody that a bus was lost."""


class Subscription(Protocol):
    async def stop(self) -> None: ...


class Bus(Protocol):
    """Words by subject, to everybody else who listens now. Nothing is kept, and nothing is promised to arrive."""

    problem: str
    """Why nobody is reached, as far as it was told; empty while somebody is."""

    async def open(self, on_lost: Callable[[], None] = nobody) -> None:
        """Come within reach if that is possible now; a bus that is away is tried again for as long as it is open.

        `on_lost` is told when nothing is heard any more.
        """
        ...

    async def close(self) -> None: ...
    def healthy(self) -> bool:
        """True when messages probably reach the other hosts."""
        ...

    @property
    def max_bytes(self) -> int:
        """The longest word it carries."""
        ...

    def publish(self, subject: str, word: bytes) -> None:
        """Say something; never waits, never fails, never comes back to whoever said it."""
        ...

    async def subscribe(self, subject: str, heard: Heard) -> Subscription:
        """Hear everything that is said from now on: when this returns and the bus is healthy, nothing is missed."""
        ...
