"""Lines that a person types, with arrow-up bringing back earlier ones, also those of the last time."""

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from paddock.cli.chatting.answers import BOLD, PLAIN

try:
    import readline
except ImportError:  # Python can be built without it; typing still works
    readline = None

KEPT_LINES = 1000


def history_file(environ: Mapping[str, str]) -> Path:
    state = environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "paddock" / "chat_history"


class LineInput:
    def __init__(self, *, colours: bool) -> None:
        self._prompt = f"\001{BOLD}\002>\001{PLAIN}\002 " if colours and readline else "> "
        self._file = history_file(os.environ)
        if readline is not None:
            with suppress(OSError):
                readline.read_history_file(self._file)

    def next(self) -> str | None:
        """The next line; None when the person wants to leave (Ctrl-D, or Ctrl-C twice in a row)."""
        for _ in range(2):
            try:
                return input(self._prompt)
            except EOFError:
                sys.stdout.write("\n")
                return None
            except UnicodeDecodeError:
                return "\udcff"  # refused where everything that is no text is, with the same sentence
            except KeyboardInterrupt:
                sys.stdout.write("\n(Ctrl-C again or Ctrl-D leaves)\n")
        return None

    def save(self) -> None:
        """What was typed is private: only this user may read it. Not being able to keep it is no reason to fail."""
        if readline is None:
            return
        with suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._file.touch(mode=0o600)
            readline.set_history_length(KEPT_LINES)
            readline.write_history_file(self._file)
