"""`paddock automations` beside a real host."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from walk.hosts import HostProcess
from warm import Command


@pytest.fixture
def host(tmp_path: Path) -> Iterator[HostProcess]:
    host = HostProcess(tmp_path / "data").start()
    yield host
    host.stop()


def test_a_job_is_made_run_switched_and_taken_away(paddock: Command, host: HostProcess) -> None:
    def say(*words: str) -> str:
        answer = paddock("automations", words[0], "--data", host.data, *words[1:])
        assert answer.returncode == 0, answer.stderr
        return answer.stdout

    assert say("list") == "There are no automations.\n"
    made = say("create", "news", "hello you", "--cron", "0 9 1 1 *", "--zone", "Asia/Shanghai", "--agent", "echo")
    job = made.split()[0]
    assert re.search(r"next \S+T01:00:00.000Z  0 9 1 1 \* Asia/Shanghai  \"news\"", made)
    assert say("firings", job) == "It has not fired yet.\n"
    run = say("run", job).split()[1]
    assert run in say("firings", job)
    assert host.finished(run)["status"] == "completed"
    assert "off" in say("disable", job)
    assert "next" in say("enable", job)
    assert [one["jobId"] for one in json.loads(say("list", "--json"))] == [job]
    assert "fires no more" in say("delete", job)
    refused = paddock("automations", "create", "--data", host.data, "x", "y", "--rrule", "FREQ=NEVER")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "an RRULE needs FREQ" in refused.stderr
