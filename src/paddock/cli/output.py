"""Output at the terminal: text, lists, hints, findings, questions, and failures with an exit code."""

import json
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TextIO, cast

USAGE = 2
FAILED = 1


class CommandError(Exception):
    """A failure in one or two sentences: the cause and what to do about it."""

    def __init__(self, message: str, *, exit_code: int = FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@contextmanager
def fails_with(
    *errors: type[Exception], says: Callable[[Exception], str] = str, exit_code: int = FAILED
) -> Generator[None]:
    """Raise these errors as a CommandError with what `says` makes of them."""
    try:
        yield
    except errors as error:
        raise CommandError(says(error), exit_code=exit_code) from error


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


_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters, but for newline and tab, and those that turn the direction in which other words are read."""


def harmless(text: str) -> str:
    """Drop what steers the terminal: whatever comes from a host was written by somebody else."""
    return _STEERING.sub("", text)


def harmless_in(value: Any) -> Any:
    """Make every text of a JSON value harmless."""
    if isinstance(value, str):
        return harmless(value)
    if isinstance(value, dict):
        return {name: harmless_in(one) for name, one in cast("dict[str, Any]", value).items()}
    return [harmless_in(one) for one in cast("list[Any]", value)] if isinstance(value, list) else value


def note(text: str) -> None:
    """Write a line beside the output, on standard error."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def print_json(value: object) -> None:
    write(json.dumps(value, ensure_ascii=False) + "\n")


def print_list(
    rows: Sequence[Mapping[str, Any]], line: Callable[[Mapping[str, Any]], str], *, nothing: str, as_json: bool = False
) -> None:
    """Print a line for each row, or `nothing` where there is none; or all of them as JSON."""
    if as_json:
        print_json(rows)
    else:
        write("".join(f"{line(row)}\n" for row in rows) or f"{nothing}\n")


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


State = Literal["ok", "note", "none", "fail"]
MARKS: Mapping[State, str] = {"ok": "ok  ", "note": "note", "none": "-   ", "fail": "FAIL"}
TINTS: Mapping[State, str] = {"ok": "\x1b[32m", "note": "\x1b[33m", "none": "", "fail": "\x1b[31m"}


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check, and what to do about it."""

    name: str
    state: State
    says: str
    remedy: str = ""


def print_findings(findings: Iterable[Finding], *, colours: bool = False, width: int = 14) -> None:
    for finding in findings:
        mark = MARKS[finding.state]
        painted = f"{TINTS[finding.state]}{mark}\x1b[0m" if colours else mark
        remedy = f"      {'':<{width}} -> {finding.remedy}\n" if finding.remedy else ""
        write(f"{painted}  {finding.name:<{width}} {finding.says}\n{remedy}")
