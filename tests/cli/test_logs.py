"""Log lines hold what happened, never what somebody holds in a variable."""

import json
import subprocess
import sys

import pytest

PROGRAM = """
import structlog
from paddock.cli.hosting import logs
logs.configure("info", {form!r})
def handler():
    key = "Bearer " + "pdk_" + "SECRET"
    raise RuntimeError("it broke")
try:
    handler()
except RuntimeError:
    structlog.get_logger("x").exception("a handler failed", action="http.failed")
"""


@pytest.mark.parametrize("form", ["json", "text"])
def test_a_traceback_in_the_log_shows_no_variables(form: str) -> None:
    ran = subprocess.run([sys.executable, "-c", PROGRAM.format(form=form)], capture_output=True, text=True, check=True)
    assert "it broke" in ran.stderr
    assert "pdk_SECRET" not in ran.stderr
    if form == "json":
        assert json.loads(ran.stderr)["action"] == "http.failed"


STANDARD = """
import logging
from paddock.cli.hosting import logs
logs.configure("info", {form!r})
about = {{"action": "a.b", "error": "why\\nDETAIL: words"}}
logging.getLogger("paddock.storage").error("storage refuses to write", extra=about)
logging.getLogger("a_library").error("it broke", extra={{"header": "pdk_SECRET"}})
try:
    raise ConnectionRefusedError("nobody there")
except OSError:
    logging.getLogger("asyncpg.pool").warning("Failed to restore the pool; retrying", exc_info=True)
"""


@pytest.mark.parametrize("form", ["json", "text"])
def test_our_own_lines_say_why_and_those_of_libraries_no_more_than_their_sentence(form: str) -> None:
    ran = subprocess.run([sys.executable, "-c", STANDARD.format(form=form)], capture_output=True, text=True, check=True)
    ours, library = ran.stderr.splitlines()  # a pool that looks for its database fills no log with tracebacks
    assert [word in ours for word in ("storage refuses to write", "a.b", "why", "DETAIL")] == [True, True, True, False]
    assert ("it broke" in library, "pdk_SECRET" in library) == (True, False)


STEERING = """
import structlog
from paddock.cli.hosting import logs
logs.configure("info", {form!r})
log = structlog.get_logger("x")
log.warning("told", value="\\x1b[31m\\x07", other="two words \\x9b")
try:
    raise RuntimeError("it broke \\x1b[2J")
except RuntimeError:
    log.exception("a handler failed \\u202e")
"""


@pytest.mark.parametrize("form", ["json", "text"])
def test_what_steers_a_terminal_is_written_as_its_numbers(form: str) -> None:
    ran = subprocess.run([sys.executable, "-c", STEERING.format(form=form)], capture_output=True, text=True, check=True)
    assert [line for line in ran.stderr.splitlines() if not line.isprintable()] == []
    assert "it broke" in ran.stderr
    assert "31m" in ran.stderr
