"""Programs run as a normal user, also where the tests run as root and the interpreter lies in root's own directory."""

import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

NOBODY = 65534


def as_normal_user(command: Sequence[str]) -> list[str]:
    """The command line for it. Where the way to our interpreter is closed to others, it is opened in a mount namespace
    of the program's own; nothing changes for anybody else."""
    if os.geteuid() != 0:
        return [*command]
    steps = ["set -e", "mount --make-rprivate /", *_opening(Path(sys.base_prefix))]
    user = f"--reuid={NOBODY} --regid={NOBODY} --clear-groups --bounding-set=-all --inh-caps=-all"
    steps.append(f"exec setpriv {user} -- {shlex.join(command)}")
    return ["unshare", "--mount", "sh", "-c", "\n".join(steps)]


def _opening(needed: Path) -> Iterator[str]:
    """Steps that lay an open directory over the first closed one above what is needed, with only that in it."""
    closed = next((one for one in reversed(needed.parents) if not one.stat().st_mode & 0o001), None)
    if closed is not None:
        path, above = shlex.quote(str(needed)), shlex.quote(str(closed))
        yield f"mount --bind {path} /mnt"
        yield f"mount -t tmpfs -o mode=755 none {above}"
        yield f"mkdir -p {path}"
        yield f"mount --bind /mnt {path}"
        yield "umount /mnt"
