"""Run the suite; what failed is run once more, alone. `make test` calls this.

Thousands of tests start real hosts, databases and browsers side by side on two cores, and one starved there says
nothing about the program. What passes alone is named as unsteady at the end, for somebody to repair; what fails alone
fails. Many failures are no accident: then nothing is run again.
"""

import subprocess
import sys
from pathlib import Path

import pytest

MANY = 5


class Failed:
    """Which tests failed, as the controller hears of it from its workers."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = without_group(report.nodeid)
        if report.failed and name not in self.names:
            self.names.append(name)


def without_group(name: str) -> str:
    """A worker writes a test's group behind its name; what stands in brackets is the test's own."""
    return name.rpartition("@")[0] if name.rfind("@") > name.rfind("]") else name


def main(arguments: list[str]) -> int:
    sys.path.insert(0, str(Path.cwd()))  # as `python -m pytest` does
    failed = Failed()
    code = pytest.main(arguments, plugins=[failed])
    if code != pytest.ExitCode.TESTS_FAILED or not 0 < len(failed.names) <= MANY:
        return code
    print(f"\nonce more, alone: {', '.join(failed.names)}", flush=True)
    again = subprocess.run([sys.executable, "-m", "pytest", *failed.names], check=False).returncode
    if again == pytest.ExitCode.OK:
        print(f"UNSTEADY, passed alone only: {', '.join(failed.names)}")
    return again


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
