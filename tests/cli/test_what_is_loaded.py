"""What the host does not need, it does not load: it would stay in memory for as long as the host runs."""

import subprocess
import sys

SERVING = "import sys, paddock.cli.main; from paddock.cli.hosting.starting import load_serve; load_serve(); "
ASKING = "import sys, paddock.cli.main, paddock.cli.app; "
LOADED = "print([name for name in {names} if name in sys.modules])"


def test_the_host_loads_no_library_for_coloured_tracebacks() -> None:
    assert _loaded(SERVING, "rich", "pygments", "structlog") == "['structlog']"


def test_the_host_does_not_keep_the_library_of_the_command_line() -> None:
    assert _loaded(SERVING, "paddock.cli.app", "paddock.cli.commands") == "[]"


def test_the_host_loads_nothing_that_reads_archives_until_somebody_brings_one() -> None:
    assert _loaded(SERVING, "tarfile", "greenlet", "paddock.runners.packages.archives") == "[]"


def test_the_host_loads_numbers_and_providers_of_models_when_somebody_asks_for_them() -> None:
    assert _loaded(SERVING, "prometheus_client", "http.server", "paddock.models.remote") == "[]"


def test_a_command_that_serves_nothing_loads_none_of_what_serves() -> None:
    assert _loaded(ASKING, "structlog", "asyncio", "pydantic", "uvicorn", "click") == "['click']"


def _loaded(code: str, *names: str) -> str:
    """Which of these modules are there after the code ran."""
    command = [sys.executable, "-c", code + LOADED.format(names=names)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.strip()
