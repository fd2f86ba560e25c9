"""The process of the host: its memory in large pages, and how it ends."""

import ctypes
import mmap
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

LARGE = 2 * 1024 * 1024
COLLAPSE = 25
"""MADV_COLLAPSE, since Linux 6.1."""
_PRESENT = 1 << 7
"""Of the last byte of a page's eight in `pagemap`: the page is in memory."""


def use_large_pages() -> int:
    """Ask Linux to use large pages; return how many took the place of small ones."""
    if sys.platform != "linux":
        return 0
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return sum(advise(start, LARGE, COLLAPSE) == 0 for start in _whole_stretches())


def _whole_stretches() -> Iterator[int]:
    """Yield addresses where a large page would fit and every small one is in use."""
    small = LARGE // mmap.PAGESIZE
    try:
        with Path("/proc/self/pagemap").open("rb", buffering=0) as pages:
            for start, end in own_memory(Path("/proc/self/maps").read_text()):
                for place in range(-(-start // LARGE) * LARGE, end - LARGE + 1, LARGE):
                    pages.seek(place // mmap.PAGESIZE * 8)
                    told = pages.read(small * 8)
                    if len(told) == small * 8 and all(byte & _PRESENT for byte in told[7::8]):
                        yield place
    except OSError:  # a kernel that does not tell
        return


def own_memory(maps: str) -> Iterator[tuple[int, int]]:
    """The stretches that are nobody's file and may be written: where the interpreter keeps its objects."""
    for line in maps.splitlines():
        about = line.split()
        if about[1] == "rw-p" and (len(about) == 5 or about[5] == "[heap]"):
            start, _, end = about[0].partition("-")
            yield int(start, 16), int(end, 16)


ANSWERS_LATE = "obstore"
HANGING_SECONDS = 0.5
"""How long threads get to end before they count as hanging."""


def hanging(prefix: str = "") -> bool:
    """Return true if non-daemon threads whose name begins with the prefix do not end in time."""
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
