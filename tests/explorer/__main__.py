"""`python -m explorer`: search, print one line, and fail with the shortest trace when a promise is broken."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from explorer.search import Report, Step, explore
from explorer.world import Bounds
from paddock.rules.session.decide import step

WISHES = ("removes", "handovers", "closes", "invites", "switches", "opens")


def main(arguments: Sequence[str] | None = None, step: Step = step) -> int:
    options = _options(arguments)
    limit = options.pop("max_transitions")
    report = explore(Bounds(**options), step, max_transitions=limit or None)
    sys.stdout.write(report.line() + "\n")
    if report.broken:
        sys.stdout.write(_story(report))
    return 1 if report.broken else 0


def _options(arguments: Sequence[str] | None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(prog="explorer", description=__doc__)
    for name in ("agents", "inputs", "cancels", "crashes", "repeats", "lies", "lates", "chunks", *WISHES):
        parser.add_argument(f"--{name}", type=int, default=getattr(Bounds(), name))
    parser.add_argument("--while-busy", type=lambda text: tuple(text.split(",")), default=Bounds().while_busy)
    parser.add_argument("--max-transitions", type=int, default=1_000_000, help="0: no limit")
    return vars(parser.parse_args(arguments))


def _story(report: Report) -> str:
    steps = (f"{number:3}. {label}\n" for number, label in enumerate(report.trace, 1))
    return "".join((*steps, *(f"  => {broken}\n" for broken in report.broken)))


if __name__ == "__main__":
    sys.exit(main())
