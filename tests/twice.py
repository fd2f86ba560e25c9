"""Run the suite; in CI, what failed is run once more, alone. `make test` calls this.

A test that fails now and then is a wrong test or a wrong program, and whoever sees it first repairs it: outside CI it
fails. Only in CI (`CI` is set), where the machine may be starved by others, a failed test gets a second try; one that
passes alone is named as unsteady at the end, one that fails alone fails. Many failures are no accident: then nothing is
run again.
"""

import os
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
    worth_a_second_try = code == pytest.ExitCode.TESTS_FAILED and 0 < len(failed.names) <= MANY
    if not (os.environ.get("CI") and worth_a_second_try):
        return code
    print(f"\nonce more, alone: {', '.join(failed.names)}", flush=True)
    again = subprocess.run([sys.executable, "-m", "pytest", *failed.names], check=False).returncode
    if again == pytest.ExitCode.OK:
        print(f"UNSTEADY, passed alone only: {', '.join(failed.names)}")
    return again


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
