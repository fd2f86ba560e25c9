"""A person at a terminal: a command on a pseudo-terminal, keys pressed, and what the screen shows."""

import os
import pty
import select
import shutil
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

PADDOCK = Path(sys.executable).with_name("paddock")
CALLED = "paddock" if shutil.which("paddock") == str(PADDOCK) else str(PADDOCK)
"""How hints name the program when a test calls it."""
CTRL_C, CTRL_D, UP = "\x03", "\x04", "\x1b[A"


class Person:
    def __init__(self, arguments: Sequence[str], env: Mapping[str, str]) -> None:
        self.pid, self._fd = pty.fork()
        if self.pid == 0:  # the child: becomes the command
            os.execve(PADDOCK, [str(PADDOCK), *arguments], {**os.environ, "TERM": "xterm", **env})
        self.screen = ""
        self._read_to = 0

    def press(self, keys: str) -> None:
        """A moment after what was seen last, as people do: a prompt is drawn before its reader is ready for Ctrl-C."""
        time.sleep(0.1)
        os.write(self._fd, keys.encode())

    def sees(self, text: str, seconds: float = 30.0) -> None:
        """Wait until this appears after what was already seen."""
        end = time.monotonic() + seconds
        while (found := self.screen.find(text, self._read_to)) < 0:
            assert time.monotonic() < end, f"{text!r} did not appear in {self.screen[self._read_to :]!r}"
            self._look(0.1)
        self._read_to = found + len(text)

    def leaves(self, seconds: float = 30.0) -> int:
        """The exit code, once the command has ended."""
        end = time.monotonic() + seconds
        while True:
            self._look(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.pid = 0
                return os.waitstatus_to_exitcode(status)
            assert time.monotonic() < end, f"still running: {self.screen[self._read_to :]!r}"

    def close(self) -> None:
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self._fd)

    def _look(self, seconds: float) -> None:
        if select.select([self._fd], [], [], seconds)[0]:
            with suppress(OSError):  # the other end of a terminal that closed
                self.screen += os.read(self._fd, 65536).decode("utf-8", "replace")
