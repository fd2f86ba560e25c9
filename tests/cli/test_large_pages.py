"""Large pages: taken where memory is in use anyway, and never more of it."""

import mmap
import sys
from pathlib import Path

import pytest

from paddock.cli.large_pages import LARGE, own_memory, use_large_pages

MAPS = """\
55d000000000-55d000400000 rw-p 00000000 00:00 0                          [heap]
7f0000000000-7f0000100000 r-xp 00000000 08:01 42                         /usr/lib/libc.so.6
7f0000200000-7f0000600000 rw-p 00000000 00:00 0
7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                          [stack]
"""


def test_only_memory_of_our_own_is_looked_at() -> None:
    assert list(own_memory(MAPS)) == [(0x55D000000000, 0x55D000400000), (0x7F0000200000, 0x7F0000600000)]


@pytest.mark.skipif(sys.platform != "linux", reason="large pages are asked of Linux")
def test_it_takes_no_more_memory_and_changes_nothing() -> None:
    full, empty = mmap.mmap(-1, 4 * LARGE), mmap.mmap(-1, 16 * LARGE)
    full[:] = b"x" * len(full)
    before = resident_kib()
    assert use_large_pages() >= 0
    assert full[:] == b"x" * len(full)
    assert resident_kib() - before < len(empty) // 2048
    full.close()
    empty.close()


def resident_kib() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])
