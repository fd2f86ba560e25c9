"""Words that one user's run wrote, or a library said, reach nobody else: what clients are told is the host's own."""

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from runners.house import House, house, plugin

pytestmark = pytest.mark.anyio

WORDS = "the reason for it all"
"""What the fixture writes to standard error before it exits."""


async def detail(here: House) -> str:
    await here.until_not_ready()
    return (await here.gateway.list_runners())[0].detail


@pytest.mark.spec("http/words-of-others")
async def test_no_run_of_a_crashed_process_is_told_what_another_run_wrote(tmp_path: Path) -> None:
    async with house(tmp_path) as here:
        neighbour, _ = await here.run("hang")
        await neighbour.until(lambda news: bool(news.text))
        crashing, _ = await here.run("exit 3")
        for each in (neighbour, crashing):
            await each.over()
            assert each.losses == [("runner.crashed", "the runner process is gone: it exited with status 3")]
        assert WORDS in await detail(here)


async def test_standard_error_is_logged_with_its_run_only_where_no_other_can_have_written_it(tmp_path: Path) -> None:
    async with house(tmp_path) as here:
        with capture_logs() as alone:
            await (await here.run("exit 1", run_id="run-1"))[0].over()
            await here.until_not_ready()
        with capture_logs() as shared:
            await (await here.run("echo", run_id="run-2"))[0].over()
            await (await here.run("exit 1", run_id="run-3"))[0].over()
            await here.until_not_ready()
    assert [line["run_id"] for line in alone if line.get("line") == WORDS] == ["run-1"]
    assert [line["run_id"] for line in shared if line.get("line") == WORDS] == [None]


REFUSING = """
import json
number = json.loads(input())["id"]
error = {"code": -1, "message": "words of a library"}
print(json.dumps({"jsonrpc": "2.0", "id": number, "error": error}), flush=True)
input()
"""
SILENT_STARTS = {
    "says something and exits": ("python", "-c", "import sys; sys.exit('words of a library')"),
    "is no program": ("there-is-no-such-program",),
    "refuses the handshake": (
        "python",
        "-c",
        REFUSING,
    ),
}


@pytest.mark.parametrize("case", SILENT_STARTS)
async def test_who_runs_an_agent_that_cannot_start_is_told_so_and_operators_are_told_why(
    tmp_path: Path, case: str
) -> None:
    now = 0.0
    async with house(tmp_path, [plugin(command=SILENT_STARTS[case])], clock=lambda: now) as here:
        for number in range(7):  # the last is told that it keeps failing
            now += 2.0 ** (number - 1) if 0 < number < 6 else 0.0
            news, _ = await here.run("echo")
            [(code, message)] = news.losses
            assert code == ("runner.start_failed" if number < 6 else "runner.unhealthy")
            assert "test/nasty" in message
            assert "words of a library" not in message
            assert "No such file" not in message
        told = await detail(here)
        assert "words of a library" in told or "cannot start there-is-no-such-program: No such file" in told
