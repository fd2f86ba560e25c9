"""Write to standard output. A disk that is full is told in a sentence; a reader that left is no failure of ours."""

import sys
from typing import TextIO

from paddock.cli.failures import CommandError


def counted(number: int, thing: str) -> str:
    """`1 file`, `2 files`."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def write(text: str, to: TextIO | None = None) -> None:
    """Write at once, so that what cannot be written is known here."""
    out = to or sys.stdout
    try:
        out.write(text)
        out.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CommandError(f"Cannot write to standard output: {error.strerror}.") from error
