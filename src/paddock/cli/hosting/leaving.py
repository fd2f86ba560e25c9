"""How the program ends: with its exit code, whatever its libraries are still at.

The library that speaks to S3 answers from threads of its own. One that comes a moment late finds Python taking itself
apart, and aborts the whole process: a clean stop then looks like a crash. A tool that hangs on a thread cannot be
stopped, and Python would wait for it. In both cases Python is not taken apart: all that matters was closed and written
before.
"""

import os
import sys
import threading
import time
from contextlib import suppress
from typing import NoReturn

ANSWERS_LATE = "obstore"
HANGING_SECONDS = 0.5
"""How long threads get to end before they count as hanging."""


def hanging(prefix: str = "") -> bool:
    """Whether threads that Python would wait for, those whose name begins so, do not end."""
    until = time.monotonic() + HANGING_SECONDS
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon and thread.name.startswith(prefix):
            thread.join(max(0.0, until - time.monotonic()))
            if thread.is_alive():
                return True
    return False


def leave(code: object) -> NoReturn:
    """End here. `code` is what `sys.exit` takes: a number, nothing, or a last sentence."""
    if ANSWERS_LATE not in sys.modules and not hanging():
        sys.exit(code)  # type: ignore[arg-type]
    if code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # whoever read it is gone
            stream.flush()
    os._exit(code or 0)
