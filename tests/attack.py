"""Attack fresh hosts in every way that tests/safety knows, the slow ones too, and sum it up in one line.

`make attack` calls this. A test may record how many attempts it made (`record_property("attempts", n)`); one that does
not counts as a single attempt.
"""

import sys
import time
from pathlib import Path

import pytest

SAFETY = Path(__file__).parent / "safety"


class Tally:
    def __init__(self) -> None:
        self.attempts = 0
        self.files: set[str] = set()
        self.through: list[str] = []
        self.not_run: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.through.append(report.nodeid)
        elif report.skipped:
            self.not_run.append(report.nodeid)
        elif report.when == "call":
            self.attempts += sum(int(str(n)) for name, n in report.user_properties if name == "attempts") or 1
            self.files.add(report.nodeid.partition("::")[0])

    def line(self, seconds: float) -> str:
        through = f"{len(self.through)} got through: {', '.join(self.through)}" if self.through else "none got through"
        missed = f"; not run: {', '.join(self.not_run)}" if self.not_run else ""
        return f"attack: {self.attempts} attempts of {len(self.files)} kinds, {through}, {seconds:.0f} s{missed}"


def main(arguments: list[str]) -> int:
    sys.path.insert(0, str(Path.cwd()))  # as `python -m pytest` does
    tally, began = Tally(), time.monotonic()
    chosen = ["-m", "long or not long", "--timeout", "1800", str(SAFETY)]
    code = pytest.main([*chosen, *arguments], plugins=[tally])
    print(tally.line(time.monotonic() - began))
    return int(code) or int(bool(tally.not_run))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
