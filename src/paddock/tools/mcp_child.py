"""Started as `python -m paddock.tools.mcp_child PROGRAM ...`: becomes that program, and dies with the host.

The kernel is asked to kill the program when whoever started it is gone, so that a dead host leaves no server behind.
Linux only; elsewhere the program still sees its input end.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
NOT_STARTED = "cannot be started:"


def main() -> None:
    parent = os.getppid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before we asked
            raise SystemExit(1)
    try:
        os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606 - the operator's own program
    except OSError as error:
        sys.stderr.write(f"{sys.argv[1]} {NOT_STARTED} {error.strerror}\n")
        raise SystemExit(127) from error


if __name__ == "__main__":
    main()
