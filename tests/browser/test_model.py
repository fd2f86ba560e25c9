"""The console's own tests: what it makes of recorded streams, in Node."""

import subprocess
from pathlib import Path

import pytest

from needs import needs, not_run

CONSOLE = Path(__file__).parents[2] / "console"


@pytest.mark.timeout(180)
def test_what_the_console_makes_of_streams_is_right_in_every_prefix() -> None:
    needs("npm", "the console's own tests")
    if not (CONSOLE / "node_modules/vitest").is_dir():
        not_run("the console's own tests, because they are not installed; `make console` does that")
    command = ["npm", "test", "--silent", "--", "--reporter=dot"]
    done = subprocess.run(command, cwd=CONSOLE, capture_output=True, text=True, timeout=170, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
