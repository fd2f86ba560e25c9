"""What the host does not need, it does not load: it would stay in memory for as long as the host runs."""

import subprocess
import sys

LOADED = "import sys, paddock.cli.main, paddock.cli.serve; print([m for m in {names} if m in sys.modules])"


def test_the_host_loads_no_library_for_coloured_tracebacks() -> None:
    code = LOADED.format(names=("rich", "pygments"))
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert told.stdout.strip() == "[]"
