"""Words that one user's run wrote, or a library said, reach nobody else: what clients are told is the host's own."""

import ast
from collections.abc import Iterator
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


ROOMS = ("rules", "host", "http_api", "models", "tools", "knowledge", "images", "platforms", "runners", "storage")
SOURCE = Path(__file__).parents[2] / "src" / "paddock"
QUIET = {"log", "_log", "isinstance", "type"}
"""Whom an exception may be given without anybody being told of it."""


def own_errors() -> set[str]:
    """Exceptions of the host: their texts are its own sentences, checked where they are raised."""
    trees = [ast.parse(file.read_text()) for file in SOURCE.rglob("*.py")]
    found = {node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    return {name for name in found if name.endswith("Error")}


def quotations(tree: ast.AST, ours: set[str]) -> Iterator[int]:
    """Lines that put the text of somebody else's exception into an error, an answer or a row."""
    for handler in (node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler) and node.name):
        caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        if all(isinstance(one, ast.Name) and one.id in ours for one in caught):
            continue
        yield from (line for part in handler.body for line in _quoting(part, str(handler.name)))


def _quoting(node: ast.AST, name: str) -> Iterator[int]:
    if isinstance(node, ast.Call):
        called = node.func
        while isinstance(called, ast.Attribute):
            called = called.value
        if isinstance(called, ast.Name) and called.id in QUIET:
            return
        if isinstance(called, ast.Name) and called.id in {"str", "cause_of"} and _names(node, name):
            yield node.lineno
    if isinstance(node, ast.keyword) and node.arg == "for_operators":
        return
    if isinstance(node, ast.FormattedValue) and isinstance(node.value, ast.Name) and node.value.id == name:
        yield node.lineno
    for child in ast.iter_child_nodes(node):
        yield from _quoting(child, name)


def _names(call: ast.Call, name: str) -> bool:
    return any(isinstance(argument, ast.Name) and argument.id == name for argument in call.args)


OF_THE_CALLER = (
    "rules/run/results.py",
    "rules/schedule/schedule.py",
    "host/calls/artifacts.py",
    "http_api/admin/knowledge.py",
    "http_api/edge/shapes.py",
    "knowledge/formats.py",
    "runners/attached_runners.py",
    "runners/wire/frames.py",
    "runners/gateway.py",
    "tools/functions.py",
)
"""Complaints about what the caller itself sent, told to that caller."""
FOR_OPERATORS = (
    "host/agents/file.py",
    "host/platforms/platforms.py",
    "host/keeping/retention.py",
    "host/agents/stored.py",
    "tools/loading.py",
    "tools/mcp_server.py",
    "tools/functions.py",
    "runners/installed/manifests.py",
    "runners/packages/archives.py",
    "runners/packages/installed.py",
    "runners/packages/langbot.py",
    "runners/installed/plugins.py",
    "runners/plugin_updates.py",
    "runners/processes/supervisor.py",
    "storage/files/backup.py",
    "storage/files/cluster_secret.py",
    "storage/files/signing_keys.py",
    "storage/sqlite/commands.py",
    "storage/sqlite/group.py",
)
"""Settings, plugins and files of the host: in the log, on a terminal, or as `for_operators`."""
ALLOWED = {*OF_THE_CALLER, *FOR_OPERATORS}


def test_no_answer_quotes_the_exception_of_a_library() -> None:
    ours = own_errors()
    found = {
        f"{file.relative_to(SOURCE)}": [*quotations(ast.parse(file.read_text()), ours)]
        for room in ROOMS
        for file in (SOURCE / room).rglob("*.py")
    }
    assert {file: lines for file, lines in found.items() if lines and file not in ALLOWED} == {}
    assert {file for file, lines in found.items() if lines} >= ALLOWED, "no longer needed"
