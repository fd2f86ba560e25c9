"""Ask Linux to keep what the host has loaded in large pages. Nothing depends on it.

A short run walks through megabytes of code and values that are spread over thousands of small pages, and on a virtual
machine looking up where a page lies is paid twice. Only stretches that are in memory whole are taken, so it costs none.
"""

import ctypes
import mmap
import sys
from collections.abc import Iterator
from pathlib import Path

LARGE = 2 * 1024 * 1024
COLLAPSE = 25
"""MADV_COLLAPSE, since Linux 6.1."""
_PRESENT = 1 << 7
"""Of the last byte of a page's eight in `pagemap`: the page is in memory."""


def use_large_pages() -> int:
    """How many large pages took the place of small ones."""
    if sys.platform != "linux":
        return 0
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return sum(advise(start, LARGE, COLLAPSE) == 0 for start in _whole_stretches())


def _whole_stretches() -> Iterator[int]:
    """Where a large page would fit and every small one is in use."""
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
