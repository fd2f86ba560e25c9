"""The hook that fails tests whose hosts were held up can hear: of a host that is forked, and of one in this process."""

import asyncio
from pathlib import Path

import pytest

import stalled
from paddock.telemetry.loop_watch import LoopWatch
from walk.hosts import HostProcess, wait_until


@pytest.mark.anyio
async def test_a_stall_in_the_process_of_the_tests_is_heard_of_unless_it_is_a_tests_own() -> None:
    stalled.since_last()
    watch = LoopWatch()
    watch.count(0.2, ["some.module.run:1", "paddock.rules.titles.read:2"])
    watch.count(0.2, ["some.module.run:1", "contracts.builders.build:2"])
    await asyncio.sleep(0)
    [heard] = stalled.since_last()
    assert "paddock.rules.titles" in heard
    assert stalled.since_last() == []


def test_a_stall_of_a_forked_host_is_heard_of_whatever_it_logs(tmp_path: Path) -> None:
    env = {"PADDOCK_LOG_LEVEL": "error", "PADDOCK_TOOLS": str(tmp_path / "slow_tools.py")}
    (tmp_path / "slow_tools.py").write_text(
        "import time\n\n\nasync def hold() -> str:\n    'Keep the loop busy.'\n"
        "    end = time.thread_time() + 0.4\n    while time.thread_time() < end:\n        pass\n    return 'done'\n"
    )
    agents = 'default_agent: a\nagents:\n  a: {runner: "plugin:paddock/local-agent/default", tools: [hold]}\n'
    host = HostProcess(tmp_path / "data", agents=agents, env=env).start()
    stalled.since_last()
    heard: list[str] = []

    def is_heard() -> bool:
        heard.extend(stalled.since_last())
        return bool(heard)

    try:
        host.finished(host.post("call hold").json()["taskId"])
        wait_until(is_heard, 30, "the stall being heard of")
    finally:
        host.stop()
    assert ".hold:" in heard[0]
