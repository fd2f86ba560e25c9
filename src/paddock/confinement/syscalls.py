"""System calls that a confined process has no business with, as a filter that the kernel obeys (seccomp).

They reach what no namespace covers (keys), open parts of the kernel that programs do not need and attackers like, or
make new user namespaces, in which a process would be root again. Everything else stays allowed.
"""

import platform
import struct
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

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
    """How one of the calls is answered."""
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
