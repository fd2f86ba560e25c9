"""Secrets that are kept: closed before they are written, opened when needed; and the mark of what closed them."""

from collections.abc import Sequence
from typing import Protocol

Owner = Sequence[str | int]
"""To whom a secret belongs and which one it is. What was sealed for one owner opens for no other."""


class Sealing(Protocol):
    """Closes and opens texts with the cluster's secret."""

    def seal(self, text: str, owner: Owner) -> str: ...

    def opened(self, sealed: str, owner: Owner) -> str | None:
        """Return what was sealed, or None when it was sealed with another secret, or for another owner."""
        ...

    def is_sealed(self, text: str) -> bool: ...

    def is_current(self, sealed: str) -> bool:
        """Whether it was sealed with the newest secret."""
        ...


class SecretRecords(Protocol):
    """Remembers by its mark which secret an installation was last used with."""

    async def secret_mark(self) -> str | None: ...

    async def set_secret_mark(self, mark: str) -> None: ...
