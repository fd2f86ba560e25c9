"""Pictures of strangers, made safe to keep and to show."""

from typing import Protocol

from paddock.rules.values import Value


class Picture(Value, frozen=True):
    """A picture as it is kept: drawn anew, so nothing is in it but what can be seen."""

    content: bytes
    width: int
    height: int


class Pictures(Protocol):
    async def clean(self, content: bytes, mime_type: str, *, max_pixels: int, workspace: str = "") -> Picture:
        """Read it as what it says it is and write it anew; workspaces take turns. Raises HostError(INVALID_ARGUMENT)
        with the reason, RATE_LIMITED when too many wait."""
        ...
