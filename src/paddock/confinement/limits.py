"""Limits that a process puts on itself before it reads foreign bytes, and the system calls a confined one may not make
(seccomp).

It keeps the files of the interpreter and the system, to read; no other file, no socket, no new process, no privilege,
and a bounded amount of memory and time. None of it can be had back. The layers are the kernel's: rlimits everywhere,
and on Linux a filter of system calls and Landlock, as far as this kernel has them.
"""

import ctypes
import os
import platform
import resource
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

_LOAD, _JUMP_IF_EQUAL, _JUMP_IF_ANY_BIT, _JUMP_IF_GREATER, _RETURN = 0x20, 0x15, 0x45, 0x25, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_ALLOW, _REFUSE, _UNKNOWN, _NO_FAMILY = 0x7FFF_0000, 0x0005_0000 | 1, 0x0005_0000 | 38, 0x0005_0000 | 97
"""Let it happen; EPERM; ENOSYS, which makes programs try an older way; EAFNOSUPPORT."""
_NEW_USER_NAMESPACE = 0x1000_0000
_X32 = 0x3FFF_FFFF

_OLDER_WAY = ("io_uring_setup", "io_uring_enter", "io_uring_register", "clone3")
_WITH_FLAGS = ("unshare", "clone")
_NEVER = (
    *("setns", "add_key", "request_key", "keyctl", "bpf", "perf_event_open", "userfaultfd", "open_by_handle_at"),
    *("syslog", "socketcall"),
)
_SOCKET = ("socket",)
_NEW_PROGRAMS = ("execve", "execveat", "fork", "vfork")
_NONE = 0xFFFF_FFFF
"""The number of a call that a machine does not have."""
REFUSED = (*_OLDER_WAY, *_WITH_FLAGS, *_NEVER, *_SOCKET)
"""Whole, but for unshare and clone: of these, what makes a user namespace; and for sockets of the usual families."""
REFUSED_TO_READERS = (*REFUSED, *_NEW_PROGRAMS)
"""A process that only reads a file has no use for any of these, nor for any socket, process or thread."""
FAMILIES = (1, 2, 10, 16)
"""Unix (first, as it may be left out), IPv4, IPv6, netlink. Others know no network namespace (AF_VSOCK leads to the
machine around this one) or are parts of the kernel that runners do not need."""


def _numbers(*own: int) -> Mapping[str, int]:
    """The numbers of one way to call the kernel; the newest calls have the same on all machines."""
    return dict(zip(REFUSED_TO_READERS, (425, 426, 427, 435, *own), strict=True))


_GENERIC = _numbers(97, 220, 268, 217, 218, 219, 280, 241, 282, 265, 116, _NONE, 198, 221, 281, _NONE, _NONE)
_X86_64 = _numbers(272, 56, 308, 248, 249, 250, 321, 298, 323, 304, 103, _NONE, 41, 59, 322, 57, 58)
_I386 = _numbers(310, 120, 346, 286, 287, 288, 357, 336, 374, 342, 103, 102, 359, 11, 358, 2, 190)
_KINDS: Mapping[str, Mapping[int, Mapping[str, int]]] = {
    "x86_64": {0xC000_003E: _X86_64, 0x4000_0003: _I386},
    "aarch64": {0xC000_00B7: _GENERIC},
    "riscv64": {0xC000_00F3: _GENERIC},
}
"""By machine, the ways its programs may call the kernel: numbers differ. A way that is not here is refused whole."""


@cache
def call_filter(*, for_reader: bool = False, unix: bool = True) -> bytes | None:
    """The program for the kernel of this machine; None where its numbers are not known.

    Without `unix` there are no Unix sockets but pairs of them.
    """
    kinds = _KINDS.get(platform.machine())
    if kinds is None:
        return None
    families = () if for_reader else FAMILIES if unix else FAMILIES[1:]
    known = b"".join(_of_kind(kind, numbers, families, for_reader=for_reader) for kind, numbers in kinds.items())
    return _step(_LOAD, _ARCHITECTURE) + known + _step(_RETURN, _UNKNOWN)


def _of_kind(architecture: int, numbers: Mapping[str, int], families: Sequence[int], *, for_reader: bool) -> bytes:
    body = b"".join(_checks(numbers, families, for_reader=for_reader))
    return _step(_JUMP_IF_EQUAL, architecture, otherwise=len(body) // 8) + body


def _checks(numbers: Mapping[str, int], families: Sequence[int], *, for_reader: bool) -> Iterator[bytes]:
    yield _step(_LOAD, _NUMBER)
    yield _step(_JUMP_IF_GREATER, _X32, otherwise=1) + _step(_RETURN, _UNKNOWN)
    for name in REFUSED_TO_READERS if for_reader else REFUSED:
        body = b"".join(_answer(name, families, for_reader=for_reader))
        yield _step(_JUMP_IF_EQUAL, numbers[name], otherwise=len(body) // 8) + body
    yield _step(_RETURN, _ALLOW)


def _answer(name: str, families: Sequence[int], *, for_reader: bool) -> Iterator[bytes]:
    if name in _WITH_FLAGS and not for_reader:
        yield _step(_LOAD, _FIRST_ARGUMENT) + _step(_JUMP_IF_ANY_BIT, _NEW_USER_NAMESPACE, otherwise=1)
        yield _step(_RETURN, _REFUSE) + _step(_RETURN, _ALLOW)
    elif name in _SOCKET:
        yield _step(_LOAD, _FIRST_ARGUMENT)
        for family in families:
            yield _step(_JUMP_IF_EQUAL, family, otherwise=1) + _step(_RETURN, _ALLOW)
        yield _step(_RETURN, _NO_FAMILY)
    else:
        yield _step(_RETURN, _UNKNOWN if name in _OLDER_WAY else _REFUSE)


def _step(code: int, value: int, *, otherwise: int = 0) -> bytes:
    """One instruction; a comparison that fails passes over so many of the next ones."""
    return struct.pack("=HBBI", code, 0, otherwise, value)


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
    """Return the kernel's version of Landlock; below 1 when it has none."""
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
