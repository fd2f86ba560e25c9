"""`serve` in real processes over real pipes."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from paddock_sdk.testing import pretend_host_for

pytestmark = pytest.mark.anyio

HEAD = """
import asyncio, os, subprocess, sys, time
print("a stray print before serve")
from paddock_sdk import *
class R(AgentRunner):
    permissions = {"storage": ["plugin"]}
    async def run(self, ctx, api):
"""
TAIL = """
print("and one that was never flushed", end="")
serve(R())
"""


def program(folder: Path, body: str) -> list[str]:
    """A plugin program whose run() is `body`."""
    path = folder / "plugin.py"
    path.write_text(HEAD + "".join(f"        {line}\n" for line in body.strip().splitlines()) + TAIL)
    return [sys.executable, str(path)]


@pytest.mark.spec("wire/stdio")
async def test_the_echo_program_serves_over_stdio_and_exits_with_status_zero() -> None:
    async with pretend_host_for([sys.executable, "-m", "paddock_runners.echo"]) as host:
        results = await host.run("hello 世界")
    assert results.text == "hello 世界"


@pytest.mark.spec("wire/stray-output")
async def test_prints_and_children_of_the_runner_never_reach_the_wire(tmp_path: Path) -> None:
    body = """
print('{"jsonrpc":"2.0","method":"run_result","params":{}}')
os.write(1, b'{"rubbish')
subprocess.run(["echo", '{"jsonrpc":"2.0"}'], check=True)
stdin_of_children = subprocess.run(["cat"], check=True, capture_output=True).stdout
yield message(repr(stdin_of_children) + repr(sys.stdin.read()))
"""
    async with pretend_host_for(program(tmp_path, body)) as host:
        results = await host.run("x")
    assert results.text == "b''''"
    assert results.types == ["message.completed", "run.completed"]


@pytest.mark.spec("wire/many-runs")
async def test_many_runs_share_one_process_and_each_keeps_its_order(tmp_path: Path) -> None:
    body = """
for n in range(300):
    yield delta(f"{ctx.text}{n} ")
    if n % 50 == 0:
        await asyncio.sleep(0)
yield message(str(os.getpid()))
"""
    async with pretend_host_for(program(tmp_path, body)) as host:
        runs = [await host.start(f"r{n}:") for n in range(20)]
        results = [await run.results() for run in runs]
    for number, said in enumerate(results):
        assert said.deltas == [f"r{number}:{n} " for n in range(300)]
    assert len({said.text for said in results}) == 1


async def test_large_results_and_large_calls_pass_through_a_full_pipe(tmp_path: Path) -> None:
    body = """
await api.storage.set("plugin", "big", b"x" * 1_000_000)
for _ in range(5):
    yield message("y" * 900_000)
"""
    async with pretend_host_for(program(tmp_path, body)) as host:
        results = await host.run("x")
        assert len(host.calls[0].params["value_base64"]) > 1_000_000
    assert len(results) == 6


@pytest.mark.spec("wire/cancel")
async def test_a_cancel_over_stdio_is_answered_after_the_clean_up(tmp_path: Path) -> None:
    body = f"""
try:
    yield delta("hm")
    await asyncio.sleep(60)
finally:
    await asyncio.sleep(0.05)
    open({str(tmp_path / "cleaned")!r}, "w").close()
"""
    async with pretend_host_for(program(tmp_path, body)) as host:
        run = await host.start("x")
        await run.until(lambda said: len(said) == 1)
        await run.cancel()
        assert (tmp_path / "cleaned").exists()


def start(command: list[str]) -> "subprocess.Popen[bytes]":
    pipe = subprocess.PIPE
    child = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)
    hello = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocol_version":"1","host":{"name":"h"},'
    tell(child, hello + b'"host_time":0,"plugin":{"author":"a","name":"b"}}}\n')
    assert child.stdout is not None
    while b'"id":1' not in child.stdout.readline():
        pass
    return child


def tell(child: "subprocess.Popen[bytes]", data: bytes) -> None:
    assert child.stdin is not None
    child.stdin.write(data)
    child.stdin.flush()


def run_frame() -> bytes:
    golden = Path(__file__).parents[2] / "tests" / "protocol" / "golden" / "AgentRunContext.json"
    context = " ".join(golden.read_text().split())
    params = '{"runner_id":"plugin:a/b/default","runner_name":"default","context":' + context + "}"
    return ('{"jsonrpc":"2.0","id":2,"method":"run_agent","params":' + params + "}\n").encode()


@pytest.mark.spec("wire/eof")
@pytest.mark.parametrize("how", ["eof", "term", "shutdown"])
def test_the_program_ends_with_status_zero_and_cleans_up_its_runs(tmp_path: Path, how: str) -> None:
    body = f"""
try:
    yield delta("hm")
    await asyncio.sleep(60)
finally:
    open({str(tmp_path / "cleaned")!r}, "w").close()
"""
    child = start(program(tmp_path, body))
    tell(child, run_frame())
    assert child.stdout is not None
    while b"message.delta" not in child.stdout.readline():
        pass
    if how == "term":
        child.send_signal(signal.SIGTERM)
    elif how == "shutdown":
        tell(child, b'{"jsonrpc":"2.0","id":3,"method":"shutdown","params":{}}\n')
    out, err = child.communicate(timeout=30)
    assert child.returncode == 0, err
    assert (tmp_path / "cleaned").exists()
    assert (b'"id":3,"result":{}' in out) == (how == "shutdown")


@pytest.mark.spec("wire/shutdown")
def test_a_run_that_ignores_its_cancel_cannot_keep_the_program_alive(tmp_path: Path) -> None:
    body = """
yield delta("hm")
while True:
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        pass
"""
    child = start(program(tmp_path, body))
    tell(child, run_frame())
    assert child.stdout is not None
    while b"message.delta" not in child.stdout.readline():
        pass
    _, err = child.communicate(timeout=30)
    assert child.returncode == 0
    assert b"left behind" in err


def test_a_host_that_stops_reading_and_goes_away_ends_the_program(tmp_path: Path) -> None:
    child = start(program(tmp_path, 'for n in range(200):\n    yield message("z" * 10000)'))
    assert child.stdout is not None
    child.stdout.close()
    tell(child, run_frame())
    assert child.wait(timeout=30) == 0


@pytest.mark.spec("wire/frame-cap")
def test_a_line_beyond_the_cap_ends_the_connection(tmp_path: Path) -> None:
    child = start(program(tmp_path, "yield message('x')"))
    with pytest.raises(BrokenPipeError):
        tell(child, b"x" * 20_000_000)
    assert child.wait(timeout=30) == 0
    assert child.stderr is not None
    assert b"longer than" in child.stderr.read()


def test_a_file_as_stdin_is_refused_with_a_sentence(tmp_path: Path) -> None:
    command = program(tmp_path, "yield message('x')")
    with Path(command[1]).open("rb") as file:
        done = subprocess.run(command, stdin=file, capture_output=True, timeout=20, check=False)
    assert done.returncode == 1
    assert b"stdin must be a pipe" in done.stderr
    assert b'`if __name__ == "__main__":` before its serve()' in done.stderr


NOT_SERVED = [
    ("serve(R)", "serve(): R is a class; serve an object of it: `serve(R())`"),
    ("serve()", "serve(): there is nothing to serve; write `serve(MyRunner())`"),
    ("serve('r')", "serve(): str is not a runner; make it a subclass of AgentRunner"),
    ("serve(R(), R())", "serve(): two runners are called 'default'; give each class its own `name`"),
]


@pytest.mark.parametrize(("call", "sentence"), NOT_SERVED)
def test_what_cannot_be_served_is_said_in_one_sentence(tmp_path: Path, call: str, sentence: str) -> None:
    command = program(tmp_path, "yield message('x')")
    path = Path(command[1])
    path.write_text(path.read_text().replace("serve(R())", call))
    done = subprocess.run(command, stdin=subprocess.PIPE, capture_output=True, timeout=20, check=False, text=True)
    assert (done.returncode, done.stderr) == (1, f"{sentence}\n")


def test_an_echo_process_stays_small() -> None:
    child = start([sys.executable, "-m", "paddock_runners.echo"])
    status = Path(f"/proc/{child.pid}/status").read_text()
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    child.communicate(timeout=30)
    assert peak < 40_000, "kilobytes"
