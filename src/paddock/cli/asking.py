"""A yes from a person before something is done that cannot be taken back."""

import sys

from paddock.cli.failures import USAGE, CommandError


def want_yes(question: str, *, unasked: str, refused: str) -> None:
    """Return after a yes. `unasked` is said where nobody can be asked, `refused` after any other answer."""
    if not sys.stdin.isatty():
        raise CommandError(unasked, exit_code=USAGE)
    sys.stdout.write(f"{question} [y/N] ")
    sys.stdout.flush()
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise CommandError(refused)
