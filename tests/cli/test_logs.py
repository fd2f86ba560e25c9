"""Log lines hold what happened, never what somebody holds in a variable."""

import json
import subprocess
import sys

import pytest

PROGRAM = """
import structlog
from paddock.cli import logs
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
