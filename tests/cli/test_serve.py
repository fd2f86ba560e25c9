"""`paddock serve` as a process: what it prints, what it refuses, how it stops."""

import json
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from subprocess import PIPE, STDOUT

import pytest

import loopback
from cli.conftest import AGENTS
from cli.package_makers import a_directory
from cli.terminals import CALLED, PADDOCK
from paddock.telemetry.loop_watch import DEAF_SECONDS
from patience import at_most
from walk.hosts import NASTY, HostProcess, wait_until
from warm import Command


@pytest.fixture
def new_host(tmp_path: Path):
    made: list[HostProcess] = []

    def make(name: str = "data", **more: object) -> HostProcess:
        made.append(HostProcess(tmp_path / name, **more))  # pyright: ignore[reportArgumentType]
        return made[-1]

    yield make
    for host in made:
        if host.process is not None and host.process.poll() is None:
            host.kill()


def test_a_host_says_where_it_is_and_leaves_nothing_behind_when_stopped(new_host: Callable[..., HostProcess]) -> None:
    started = time.monotonic()
    host = new_host(fresh=True).start()
    assert loopback.get(f"{host.url}/readyz").status_code == 200
    assert time.monotonic() - started < at_most(3)
    assert host.says(f"  data  {host.data}\n")
    assert host.says(f'  chat  {CALLED} chat --data {host.data} "hello"\n')
    said = json.loads((host.data / "serve.json").read_text())
    assert said == {"url": host.url, "pid": host.pid}
    assert stat.S_IMODE((host.data / "local-token").stat().st_mode) == 0o600
    assert stat.S_IMODE(host.data.stat().st_mode) == 0o700

    host.send_signal(signal.SIGTERM)

    assert host.wait(30) == 0
    assert not (host.data / "serve.json").exists()
    assert not (host.data / "local-token").exists()


def test_the_local_token_is_what_lets_the_command_line_in(new_host: Callable[..., HostProcess]) -> None:
    host = new_host().start()
    token = (host.data / "local-token").read_text().strip()
    body = {"workspace": "w", "user": "u"}
    made = loopback.post(f"{host.url}/api/v1/api-keys", json=body, headers={"Authorization": f"Bearer {token}"})
    assert made.status_code == 201
    assert loopback.get(f"{host.url}/api/v1/agents").status_code == 401
    headers = {"Authorization": f"Bearer {token[:-1]}x"}
    assert loopback.get(f"{host.url}/api/v1/agents", headers=headers).status_code == 401


def test_a_second_host_on_the_same_data_is_refused_with_a_sentence(served: HostProcess, paddock: Command) -> None:
    second = paddock("serve", "--data", served.data, "--port", "0")
    assert second.returncode == 2
    assert f"is in use by process {served.pid}" in second.stderr
    assert "another --data" in second.stderr
    assert loopback.get(f"{served.url}/readyz").status_code == 200
    assert (served.data / "serve.json").exists()


def test_a_port_in_use_is_one_sentence(served: HostProcess, paddock: Command, tmp_path: Path) -> None:
    port = served.url.rsplit(":", 1)[1]
    other = paddock("serve", "--data", tmp_path / "d", "--port", port)
    assert other.returncode == 2
    assert other.stderr.startswith(f"paddock: Port {port} on 127.0.0.1 is in use. Stop what uses it, or choose another")
    assert other.stderr.count("\n") == 1


@pytest.mark.parametrize("host", ["192.0.2.1", "no.such.name.invalid"])
def test_an_address_that_is_not_ours_is_one_sentence(paddock: Command, tmp_path: Path, host: str) -> None:
    assert paddock("keys", "create", "--workspace", "w", "--user", "u", "--data", tmp_path / "d").returncode == 0
    refused = paddock("serve", "--data", tmp_path / "d", "--host", host, "--port", "0")
    assert refused.returncode == 2
    assert host in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_other_machines_are_let_in_only_once_a_key_exists(
    new_host: Callable[..., HostProcess], paddock: Command, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    refused = paddock("serve", "--data", data, "--host", "0.0.0.0", "--port", "0")
    assert refused.returncode == 2
    assert f"{CALLED} keys create --user NAME --role admin --data {data}" in refused.stderr

    command = refused.stderr[refused.stderr.index("keys create") :].split()
    assert paddock(*command).returncode == 0

    host = new_host(extra=("--host", "0.0.0.0")).start()
    said = json.loads((data / "serve.json").read_text())
    assert said["url"] == host.url.replace("0.0.0.0", "127.0.0.1")
    assert loopback.get(f"{said['url']}/api/v1/agents").status_code == 401
    assert paddock("chat", "--agent", "echo", "--data", data, "hello").stdout == "hello\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--port", "x"], "paddock: port = x (from --port) is not allowed: it must be a whole number from 0 to 65535"),
        (["--config", "none.toml"], "paddock: Cannot read the settings file"),
        (["--agents", "bad.yaml", "--port", "0"], "bad.yaml"),
    ],
)
def test_a_wrong_setting_is_one_sentence_and_exit_code_2(
    paddock: Command, tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    (tmp_path / "bad.yaml").write_text("agents:\n  a: {runner: nonsense}\n")
    refused = paddock("serve", *arguments)
    assert refused.returncode == 2
    assert sentence in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert "Traceback" not in refused.stderr


def test_a_mistyped_variable_is_pointed_out(new_host: Callable[..., HostProcess]) -> None:
    host = new_host(env={"PADDOCK_PROT": "1"}).start()
    assert host.says("paddock: PADDOCK_PROT is set in the environment but is no setting (did you mean PADDOCK_PORT?)\n")


def test_a_data_directory_that_cannot_be_made_is_one_sentence(paddock: Command, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refused = paddock("serve", "--data", tmp_path / "file" / "d", "--port", "0")
    assert refused.returncode == 2
    why = f"the data directory {tmp_path}/file/d cannot be made: Not a directory. Choose another with --data."
    assert refused.stderr == f"paddock: {why}\n"


@pytest.mark.parametrize("command", [("keys", "create", "--user", "u"), ("runner", "install", "p", "--yes")])
def test_a_data_directory_that_can_never_be_is_exit_code_2_everywhere(
    paddock: Command, tmp_path: Path, command: tuple[str, ...]
) -> None:
    a_directory(tmp_path / "p")
    (tmp_path / "file").write_text("")
    refused = paddock(*command, "--data", tmp_path / "file" / "d")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.endswith(f"cannot be used: {tmp_path}/file is not a directory. Choose another with --data.\n")


def test_the_version_is_told_in_both_ways(paddock: Command) -> None:
    asked = paddock("--version")
    assert (asked.returncode, asked.stdout, asked.stderr) == (0, version("paddock") + "\n", "")
    assert paddock("version").stdout == asked.stdout


def test_output_that_cannot_be_written_is_one_sentence(paddock: Command) -> None:
    with Path("/dev/full").open("w") as full:
        failed = subprocess.run(
            [PADDOCK, "version"], stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=30
        )
    assert (failed.returncode, failed.stderr) == (
        1,
        "paddock: Cannot write to standard output: No space left on device.\n",
    )


def test_what_a_killed_host_left_behind_does_not_stop_the_next_one(new_host: Callable[..., HostProcess]) -> None:
    first = new_host().start()
    first.kill()
    assert (first.data / "serve.json").exists()
    second = new_host().start()
    assert json.loads((second.data / "serve.json").read_text())["pid"] == second.pid
    assert second.stop() == 0


def test_stopping_ends_open_streams_with_their_last_event(new_host: Callable[..., HostProcess]) -> None:
    host = new_host(agents=AGENTS, plugins=(NASTY,)).start()
    task = host.post("count 10000 0.01", agent="slow").json()["taskId"]
    stop = []

    def ask_to_stop(event: object) -> bool:
        if not stop:
            stop.append(host.send_signal(signal.SIGTERM))
        return False

    events = host.events(task, stop_when=ask_to_stop)

    assert (events[-1].type, events[-1].data["code"]) == ("RUN_ERROR", "host_shutdown")
    assert host.wait(30) == 0


def test_a_second_signal_does_not_wait() -> None:
    code = (
        "import asyncio, os, signal\n"
        "from paddock.cli.hosting.serve import _signals\n"
        "from paddock.telemetry.loop_watch import LoopWatch\n"
        "async def stuck():\n"
        "    with _signals(asyncio.Event(), LoopWatch()):\n"
        "        for number in (signal.SIGTERM, signal.SIGINT):\n"
        "            os.kill(os.getpid(), number)\n"
        "            await asyncio.sleep(0.1)\n"
        "        await asyncio.sleep(60)\n"
        "asyncio.run(stuck())\n"
    )
    stuck = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False)
    assert stuck.returncode == 130
    assert stuck.stdout == "Stopping. Press Ctrl-C again to stop at once.\nStopping at once.\n"


STUCK = """
import sys
from paddock.cli.main import main
from paddock.compose.lifecycle import Readiness

def stuck(self):
    print("stuck", flush=True)
    while True:
        pass

Readiness.now = stuck
sys.argv = ["paddock", "serve", "--data", sys.argv[1], "--port", sys.argv[2]]
main()
"""


@pytest.fixture
def stuck_host(tmp_path: Path, clean_env: dict[str, str]) -> Iterator["subprocess.Popen[str]"]:
    """A host whose event loop works on one request and never comes back."""
    port = loopback.free_port()
    command = [sys.executable, "-c", STUCK, tmp_path / "d", str(port)]
    with subprocess.Popen(command, env=clean_env, stdout=PIPE, stderr=STDOUT, text=True) as process:
        assert process.stdout is not None
        wait_until(lambda: _connects(port), 20, "the port being taken")
        with socket.create_connection(("127.0.0.1", port)) as caller:
            caller.sendall(b"GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert any("stuck" in line for line in process.stdout)
        try:
            yield process
        finally:
            process.kill()


def said_by(process: "subprocess.Popen[str]", word: str) -> str:
    """Its next line with this word, when it comes."""
    assert process.stdout is not None
    return next(line for line in process.stdout if word in line)


def test_a_host_whose_loop_never_comes_back_ends_when_it_is_asked_to(stuck_host: "subprocess.Popen[str]") -> None:
    assert ".stuck:" in said_by(stuck_host, "loop.stalling"), "the log tells where"
    asked = time.monotonic()
    stuck_host.send_signal(signal.SIGTERM)
    said, _ = stuck_host.communicate(timeout=60)
    assert stuck_host.returncode == 130
    assert time.monotonic() - asked < at_most(DEAF_SECONDS + 2)
    assert "Stopping at once: the event loop does not answer.\n" in said


def test_a_second_signal_ends_a_host_whose_loop_never_comes_back_at_once(stuck_host: "subprocess.Popen[str]") -> None:
    def ended() -> bool:
        stuck_host.send_signal(signal.SIGTERM)  # again and again: two that come together count once
        return stuck_host.poll() is not None

    wait_until(ended, min(at_most(2), DEAF_SECONDS - 1), "its end")
    assert stuck_host.returncode == 130


def test_callers_that_come_while_it_starts_are_answered(tmp_path: Path, clean_env: dict[str, str]) -> None:
    """The port is taken before the house stands, so an early caller waits instead of being turned away."""
    port = loopback.free_port()
    command = [Path(sys.executable).with_name("paddock"), "serve", "--data", tmp_path / "d", "--port", str(port)]
    with subprocess.Popen(command, env=clean_env, stdout=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: _connects(port), 20, "the port being taken")
            assert loopback.get(f"http://127.0.0.1:{port}/readyz").status_code == 200
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 0


def _connects(port: int) -> bool:
    with socket.socket() as caller:
        return caller.connect_ex(("127.0.0.1", port)) == 0
