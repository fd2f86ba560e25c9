"""Everything said to a person at the terminal: output, hints, findings, questions, and failures with an exit code."""

import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TextIO

USAGE = 2
FAILED = 1


class CommandError(Exception):
    """A failure in one or two sentences: the cause and what to do about it."""

    def __init__(self, message: str, *, exit_code: int = FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def as_sentence(error: object) -> str:
    """Return an error's text with a full stop, unless it ends a sentence already (`did you mean tools?`)."""
    text = str(error)
    return text if text.endswith((".", "?", "!")) else f"{text}."


def with_advice(error: Exception) -> str:
    """Return a store's error with advice where it has none of its own."""
    from paddock.storage.postgres.connection import advice_on

    return f"{error}. {advice_on(error)}".rstrip()


def counted(number: int, thing: str) -> str:
    """`1 file`, `2 files`."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def write(text: str, to: TextIO | None = None) -> None:
    """Write at once, so that what cannot be written is known here."""
    out = to or sys.stdout
    try:
        out.write(text)
        out.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CommandError(f"Cannot write to standard output: {error.strerror}.") from error


NAME = "paddock"


def program() -> str:
    """`paddock` where typing that finds this very program, else the path it was called by."""
    called = sys.argv[0] if sys.argv else ""
    if Path(called).name != NAME or "/" not in called:
        return NAME
    found = shutil.which(NAME)
    return NAME if found and Path(found).absolute() == Path(called).absolute() else shlex.quote(called)


def command(words: str, *, url: str | None = None, data: Path | None = None) -> str:
    """A command that can be typed as it is, for the host that was asked for here."""
    return f"{program()} {words}{_place(url, data)}"


def _place(url: str | None, data: Path | None) -> str:
    at_url = f" --url {shlex.quote(url)}" if url else ""
    return at_url + (f" --data {shlex.quote(str(data))}" if data else "")


def want_yes(question: str, *, unasked: str, refused: str) -> None:
    """Return after a yes. `unasked` is said where nobody can be asked, `refused` after any other answer."""
    if not sys.stdin.isatty():
        raise CommandError(unasked, exit_code=USAGE)
    sys.stdout.write(f"{question} [y/N] ")
    sys.stdout.flush()
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise CommandError(refused)


@dataclass(frozen=True, slots=True)
class Finding:
    name: str
    state: Literal["ok", "note", "fail"]
    says: str
    remedy: str = ""


def shown(finding: Finding, *, colours: bool) -> str:
    mark = {"ok": "ok  ", "note": "note", "fail": "FAIL"}[finding.state]
    tint = {"ok": "\x1b[32m", "note": "\x1b[33m", "fail": "\x1b[31m"}[finding.state]
    painted = f"{tint}{mark}\x1b[0m" if colours else mark
    return f"{painted}  {finding.name:<14} {finding.says}" + (
        f"\n      {'':<14} -> {finding.remedy}" if finding.remedy else ""
    )
