"""How the program ends: with its exit code, whatever its libraries are still at.

The library that speaks to S3 answers from threads of its own. One that comes a moment late finds Python taking itself
apart, and aborts the whole process: a clean stop then looks like a crash. So where it was loaded, Python is not taken
apart: all that matters was closed and written before.
"""

import os
import sys
from contextlib import suppress
from typing import NoReturn

ANSWERS_LATE = "obstore"


def leave(code: object) -> NoReturn:
    """End here. `code` is what `sys.exit` takes: a number, nothing, or a last sentence."""
    if ANSWERS_LATE not in sys.modules:
        sys.exit(code)  # type: ignore[arg-type]
    if code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # whoever read it is gone
            stream.flush()
    os._exit(code or 0)
