"""What the server says to one request: an answer, an error, or something no server should say."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Says:
    text: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    """Tools to call: name and the text of the arguments, good or bad."""
    thinks: str = ""
    status: int = 200
    error: str = "scripted error"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    rubbish: bytes | None = None
    """Said instead of an answer, with status 200."""
    cut_after: int | None = None
    """Break the connection after so many chunks."""
    fail_after: int | None = None
    """Report an error in the stream after so many chunks."""
    pause: float = 0.0
    """Seconds before each chunk."""
    silent: bool = False
    """Accept the request and say nothing until the client leaves."""
    finish: str = "stop"
    prompt_tokens: int = 11
    completion_tokens: int = 7
    vectors: tuple[tuple[float, ...], ...] = ()
    ranking: tuple[tuple[int, float], ...] = ()

    @property
    def words(self) -> list[str]:
        """The text in the portions it is streamed in."""
        return re.findall(r"\S+\s*|\s+", self.text)
