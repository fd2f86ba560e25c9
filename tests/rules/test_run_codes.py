"""Every code that a run can end with by the host's word is in the table of the spec, with what it means.

The codes are a type (`RunCode`). Whatever ends a run takes one of them, or a code that a runner made up for itself, so
the type checker, which is part of every check, finds a code that is not in the type; here the type meets the table."""

import re
from pathlib import Path
from typing import get_type_hints

import pytest

from paddock.host.runs.authority import start_code
from paddock.ports.runners import RunListener
from paddock.rules.errors import RUN_CODES, EndCode, ErrorCode, HostError, RunCode
from paddock.rules.run.results import Wrong
from paddock.rules.session import wording
from paddock.rules.session.messages import RunFailed
from paddock.runners.wire.errors import StartError

ROOT = Path(__file__).parents[2]
SPEC = ROOT / "docs/spec/runner-protocol.md"
HEADING = "Runs that end without the runner's own word get one of the host's codes:"
TAKES_A_RUNNERS_WORD = {
    "rules/log/projection.py": "the log, where the code was written down",
    "rules/run/outputs.py": "`run.failed`",
    "rules/session/bus.py": "a failure that is told on the bus",
    "runners/wire/runs.py": "a refusal of `run_agent`",
}


@pytest.mark.spec("wire/run-codes")
def test_the_table_has_every_code_by_which_the_host_ends_a_run_and_no_other() -> None:
    assert _in_the_table() == RUN_CODES


@pytest.mark.parametrize(
    "ends", [RunFailed, RunListener.lost, wording.end, StartError.__init__, Wrong], ids=lambda one: one.__qualname__
)
def test_what_ends_a_run_takes_no_code_that_is_not_listed(ends: object) -> None:
    assert get_type_hints(ends)["code"] in {EndCode, RunCode}


def test_a_code_counts_as_a_runners_own_only_where_a_runner_is_heard() -> None:
    package = ROOT / "src/paddock"
    found = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if re.search(r"\bRunnersOwn\(", path.read_text())
    }
    assert found == {*TAKES_A_RUNNERS_WORD}


def test_a_refusal_that_names_a_code_of_no_list_counts_as_a_start_that_failed() -> None:
    refused = HostError(ErrorCode.INVALID_ARGUMENT, "no", details={"run_code": "agent.made_up"})
    assert start_code(refused) == "runner.start_failed"
    assert start_code(HostError(ErrorCode.NOT_FOUND, "no")) == "runner.not_found"


def _in_the_table() -> set[str]:
    table = SPEC.read_text().partition(HEADING)[2].partition("\n## ")[0]
    firsts = [line.split("|")[1] for line in table.splitlines() if line.startswith("|")]
    return {code for cell in firsts for code in re.findall(r"`([^`]+)`", cell)}
