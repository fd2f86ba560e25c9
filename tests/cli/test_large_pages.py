"""Large pages: taken where memory is in use anyway, and never more of it."""

import subprocess
import sys

import pytest

from paddock.cli.hosting.process import own_memory

MAPS = """\
55d000000000-55d000400000 rw-p 00000000 00:00 0                          [heap]
7f0000000000-7f0000100000 r-xp 00000000 08:01 42                         /usr/lib/libc.so.6
7f0000200000-7f0000600000 rw-p 00000000 00:00 0
7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                          [stack]
"""


def test_only_memory_of_our_own_is_looked_at() -> None:
    assert list(own_memory(MAPS)) == [(0x55D000000000, 0x55D000400000), (0x7F0000200000, 0x7F0000600000)]


ALONE = """
import mmap
from pathlib import Path

from paddock.cli.hosting.process import LARGE, use_large_pages


def resident_kib():
    return int(Path("/proc/self/status").read_text().partition("VmRSS:")[2].split()[0])


OURS = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
full, sparse = mmap.mmap(-1, 4 * LARGE, flags=OURS), mmap.mmap(-1, 16 * LARGE, flags=OURS)
sparse[::LARGE // 2] = b"y" * 32  # in use here and there: a large page would take all of it
full[:] = b"x" * len(full)
before = resident_kib()
use_large_pages()
assert full[:] == b"x" * len(full), "the values changed"
assert resident_kib() - before < len(sparse) // 2048, f"{resident_kib() - before} KiB more"
"""


@pytest.mark.skipif(sys.platform != "linux", reason="large pages are asked of Linux")
def test_it_takes_no_more_memory_and_changes_nothing() -> None:
    """In a process of its own: what else grows in this one is not the question."""
    said = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, timeout=60, check=False)
    assert said.returncode == 0, said.stderr
