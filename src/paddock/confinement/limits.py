"""A process that is about to read a stranger's bytes takes from itself what reading does not need.

It keeps the files of the interpreter and the system, to read; no other file, no socket, no new process, no privilege,
and a bounded amount of memory and time. None of it can be had back. The layers are the kernel's: rlimits everywhere,
and on Linux a filter of system calls and Landlock, as far as this kernel has them.
"""

import ctypes
import os
import resource
import struct
import sys
from contextlib import suppress
from pathlib import Path

from paddock.confinement.syscalls import call_filter

NO_NEW_PRIVILEGES, SET_FILTER, FILTER_MODE = 38, 22, 2
CREATE_RULES, ADD_RULE, RESTRICT, BENEATH = 444, 445, 446, 1
READ = 0b1101
"""Execute, read a file, list a directory."""
SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/etc/localtime")


def hold_still(*, memory_bytes: int, cpu_seconds: int) -> None:
    """Take from this process what it will not need. What a kernel does not know is left out; the rest holds."""
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        _see_only_programs(libc)
        _drop_privileges(libc)
        _ask_less(libc)
    for what, most in (
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_CPU, cpu_seconds),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NPROC, 0),
    ):
        with suppress(ValueError, OSError):  # already lower
            resource.setrlimit(what, (most, most))


def landlock_version() -> int:
    """Which Landlock this kernel has; below 1 when it has none."""
    return ctypes.CDLL(None).syscall(CREATE_RULES, None, 0, 1) if sys.platform == "linux" else 0


def _drop_privileges(libc: ctypes.CDLL) -> None:
    """Root without its capabilities is somebody whom modes and limits stop."""
    libc.capset(struct.pack("=Ii", 0x2008_0522, 0), bytes(24))


def _ask_less(libc: ctypes.CDLL) -> None:
    if (calls := call_filter(for_reader=True)) is not None:
        program = ctypes.create_string_buffer(calls, len(calls))
        head = struct.pack("@HP", len(calls) // 8, ctypes.addressof(program))
        libc.prctl(SET_FILTER, FILTER_MODE, head, 0, 0)


def _see_only_programs(libc: ctypes.CDLL) -> None:
    """Landlock: of the file system, what programs are made of, to read; of the network nothing."""
    if (version := landlock_version()) < 1:
        return
    files = (1 << (13 + (version >= 2) + (version >= 3) + (version >= 5))) - 1
    wanted = [files, *([3] if version >= 4 else []), *([3] if version >= 6 else [])]
    rules = libc.syscall(CREATE_RULES, struct.pack(f"={len(wanted)}Q", *wanted), 8 * len(wanted), 0)
    if rules < 0:
        return
    for path in {*SYSTEM, sys.prefix, sys.base_prefix, *sys.path}:
        if path and Path(path).exists():
            _allow(libc, rules, path)
    libc.syscall(RESTRICT, rules, 0)
    os.close(rules)


def _allow(libc: ctypes.CDLL, rules: int, path: str) -> None:
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    rights = READ if Path(path).is_dir() else READ & ~0b1000
    libc.syscall(ADD_RULE, rules, BENEATH, struct.pack("=Qi", rights, place), 0)
    os.close(place)
