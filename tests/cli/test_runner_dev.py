"""`paddock runner dev`: trying a plugin while writing it."""

import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import warm
from cli.conftest import Command
from cli.terminals import CALLED
from loopback import free_port
from paddock.cli.plugin_work.dev import snapshot
from patience import at_most
from walk.hosts import HostProcess, wait_until

AGENTS = 'agents:\n  hello: {runner: "plugin:me/hello/default"}\n'


@pytest.fixture
def hello(paddock: Command, tmp_path: Path) -> Path:
    assert paddock("runner", "new", "hello", "--author", "me").returncode == 0
    return tmp_path / "hello"


class Dev:
    """`paddock runner dev` in the background."""

    def __init__(self, *arguments: object, env: dict[str, str], log: Path) -> None:
        self._log = log
        with log.open("w") as file:
            self.process = warm.start(["runner", "dev", *arguments], env=env, stderr=file, stdin=warm.DEVNULL)

    def says(self, text: str, times: int = 1) -> None:
        wait_until(lambda: self._log.read_text().count(text) >= times, 60, f"{text!r} in {self._log.read_text()!r}")

    def said(self) -> str:
        return self._log.read_text()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(30)


@pytest.fixture
def dev(clean_env: dict[str, str], tmp_path: Path):
    started: list[Dev] = []

    def start(*arguments: object) -> Dev:
        started.append(Dev(*arguments, env=clean_env, log=tmp_path / f"dev-{len(started)}.log"))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait(30)


def test_a_plugin_under_work_answers_at_the_host_and_again_after_each_save(
    paddock: Command, hello: Path, dev: Callable[..., Dev], tmp_path: Path
) -> None:
    host = HostProcess(tmp_path / "data", agents=AGENTS).start()
    try:
        trying = dev(hello, "--data", host.data)
        trying.says("attached plugin:me/hello/default")
        assert paddock("chat", "--data", host.data, "hi").stdout.startswith("Hello! You said 'hi'.")

        runner = hello / "runner.py"
        runner.write_text(runner.read_text().replace("Hello!", "Good day!"))
        trying.says("attached plugin:me/hello/default", times=2)
        assert paddock("chat", "--data", host.data, "hi").stdout.startswith("Good day! You said 'hi'.")

        runner.write_text("raise SystemExit('broken')")
        trying.says("the plugin ended with exit code 1; it starts again when you save")
        assert paddock("chat", "--data", host.data, "hi").returncode == 1
        assert trying.stop() == 0
    finally:
        host.stop()


SLOW = """\
import anyio
from pathlib import Path
from paddock_sdk import AgentRunner, delta, message, serve

class Slow(AgentRunner):
    name = "default"
    async def run(self, ctx, host):
        Path({begun!r}).write_text("x")
        while not Path({go!r}).exists():
            await anyio.sleep(0.05)
        yield message("the old one finished")

serve(Slow())
"""


def test_a_run_under_way_may_finish_when_a_file_is_saved(
    paddock: Command, hello: Path, dev: Callable[..., Dev], clean_env: dict[str, str], tmp_path: Path
) -> None:
    runner, begun, go = hello / "runner.py", tmp_path / "begun", tmp_path / "go"
    good = runner.read_text()
    runner.write_text(SLOW.format(begun=str(begun), go=str(go)))
    host = HostProcess(tmp_path / "data", agents=AGENTS).start()
    try:
        trying = dev(hello, "--data", host.data)
        trying.says("attached plugin:me/hello/default")
        streams = {"stdin": warm.DEVNULL, "stdout": warm.PIPE, "stderr": warm.PIPE}
        asking = warm.Process(["chat", "--data", host.data, "hi"], env=clean_env, cwd=tmp_path, **streams)
        wait_until(begun.exists, 30, "the run")
        runner.write_text(good)
        trying.says("saved; 1 run is under way and may finish first")
        go.touch()
        answer, problem = asking.communicate(timeout=60)
        assert (answer, asking.returncode) == ("the old one finished\n", 0), problem
        trying.says("attached plugin:me/hello/default", times=2)
        assert paddock("chat", "--data", host.data, "hi").stdout.startswith("Hello! You said 'hi'.")
        assert trying.stop() == 0
    finally:
        host.stop()


def test_a_host_that_restarts_gets_the_plugin_back(
    paddock: Command, hello: Path, dev: Callable[..., Dev], tmp_path: Path
) -> None:
    first = HostProcess(tmp_path / "data", agents=AGENTS).start()
    trying = dev(hello, "--data", first.data)
    trying.says("attached plugin:me/hello/default")
    first.stop()
    second = HostProcess(tmp_path / "data", agents=AGENTS).start()
    try:
        trying.says("attached plugin:me/hello/default", times=2)
        assert paddock("chat", "--data", second.data, "hi").stdout.startswith("Hello!")
        trying.stop()
    finally:
        second.stop()


def test_a_host_that_was_killed_gets_it_back_though_its_key_is_another_one_now(
    hello: Path, dev: Callable[..., Dev], tmp_path: Path
) -> None:
    """The files that lead to a killed host stay where they were, until the next one writes its own."""
    port = ("--port", str(free_port()))
    first = HostProcess(tmp_path / "data", extra=port).start()
    trying = dev(hello, "--data", first.data)
    trying.says("attached plugin:me/hello/default")
    first.kill()
    stranger = HostProcess(tmp_path / "other", extra=port).start()  # there already, while the old key is still read
    trying.says("this key is not known here")
    assert stranger.stop() == 0
    second = HostProcess(tmp_path / "data", extra=port).start()
    try:
        trying.says("attached plugin:me/hello/default", times=2)
        assert trying.stop() == 0
    finally:
        second.stop()


@pytest.mark.usefixtures("node")
def test_a_plugin_in_another_language_is_tried_the_same_way(
    paddock: Command, dev: Callable[..., Dev], tmp_path: Path
) -> None:
    example = shutil.copytree(Path(__file__).parents[2] / "examples" / "node-runner", tmp_path / "node")
    agents = 'agents:\n  node: {runner: "plugin:examples/node-counter/default"}\n'
    host = HostProcess(tmp_path / "data", agents=agents).start()
    try:
        trying = dev(example, "--data", host.data)
        trying.says(f'try it: {CALLED} chat --data {host.data} --agent node "hello"')
        said = paddock("chat", "--data", host.data, "--agent", "node", "bonjour")
        assert said.returncode == 0, said.stderr
        assert "bonjour" in said.stdout
        assert trying.stop() == 0
    finally:
        host.stop()


def test_a_line_that_is_no_frame_is_shown_and_not_sent(
    paddock: Command, hello: Path, dev: Callable[..., Dev], served: HostProcess
) -> None:
    plugin = hello / "paddock-plugin.toml"
    plugin.write_text(
        plugin.read_text().replace('["python", "runner.py"]', '["sh", "-c", "echo oops; exec python runner.py"]')
    )
    plugin.write_text(plugin.read_text().replace("exec python", f"exec {sys.executable}"))
    trying = dev(hello, "--data", served.data)
    trying.says("not a frame, ignored: oops")
    assert trying.stop() == 0


def test_dev_leaves_no_process_behind(
    hello: Path, dev: Callable[..., Dev], served: HostProcess, tmp_path: Path
) -> None:
    runner = hello / "runner.py"
    told = str(tmp_path / "pid")
    lines = [
        "import subprocess",
        "child = subprocess.Popen(['sleep', '1000'])",
        f"open({told!r}, 'w').write(str(child.pid))",
    ]
    runner.write_text("\n".join(lines) + "\n" + runner.read_text())
    trying = dev(hello, "--data", served.data)
    trying.says("attached")
    wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), 30, "the grandchild")
    trying.stop()
    pid = int((tmp_path / "pid").read_text())
    wait_until(lambda: not _runs(pid), 30, "the grandchild being gone")


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_without_a_host_or_a_plugin_dev_says_so(paddock: Command, hello: Path, tmp_path: Path) -> None:
    started = time.monotonic()
    assert "No host answers" in paddock("runner", "dev", hello, "--url", "http://127.0.0.1:9").stderr
    nothing = paddock("runner", "dev", tmp_path, "--url", "http://127.0.0.1:9")
    assert nothing.returncode == 2
    assert "is no plugin: it has no paddock-plugin.toml" in nothing.stderr
    assert time.monotonic() - started < at_most(5)


def change(file: Path, before: str, after: str) -> None:
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after))


def test_what_is_tried_may_do_no_more_than_its_plugin_file_says(
    paddock: Command, hello: Path, dev: Callable[..., Dev], tmp_path: Path
) -> None:
    host = HostProcess(tmp_path / "data").start()
    chat = ("chat", "--data", host.data, "--agent", "hello", "hi")
    try:
        trying = dev(hello, "--data", host.data)
        trying.says("attached plugin:me/hello/default")
        assert paddock(*chat).stdout.endswith("That was turn 1.\n")

        change(hello / "paddock-plugin.toml", 'storage = ["plugin"]', "storage = []")
        trying.says("attached plugin:me/hello/default", times=2)
        refused = paddock(*chat)
        assert refused.returncode == 1
        assert "That was turn" not in refused.stdout
    finally:
        host.stop()


def test_the_plugin_file_is_read_again_after_each_save(
    paddock: Command, hello: Path, dev: Callable[..., Dev], served: HostProcess
) -> None:
    file = hello / "paddock-plugin.toml"
    trying = dev(hello, "--data", served.data)
    trying.says("attached plugin:me/hello/default")

    change(file, "[permissions]", "[permissions")
    trying.says("paddock-plugin.toml cannot be read: ")
    trying.says("it is tried again when you save")
    change(file, "[permissions", "[permissions]")
    trying.says("attached plugin:me/hello/default", times=2)

    change(file, '"python", "runner.py"', '"no-such-program"')
    trying.says("Cannot start no-such-program: No such file or directory; it is tried again when you save")
    (hello / "runner.py").rename(hello / "main.py")
    change(file, '"no-such-program"', '"python", "main.py"')
    trying.says("attached plugin:me/hello/default", times=3)
    assert trying.stop() == 0


FROM_THE_FUTURE = """\
import json, sys
open({starts!r}, "a").write("x")
for line in sys.stdin:
    result = {{"protocol_version": "9", "sdk": {{"name": "future", "version": "9"}}, "runners": []}}
    print(json.dumps({{"jsonrpc": "2.0", "id": json.loads(line)["id"], "result": result}}), flush=True)
"""


def test_a_refused_plugin_hears_why_and_waits_for_the_next_save(
    hello: Path, dev: Callable[..., Dev], served: HostProcess, tmp_path: Path
) -> None:
    starts, good = tmp_path / "starts", (hello / "runner.py").read_text()
    (hello / "runner.py").write_text(FROM_THE_FUTURE.format(starts=str(starts)))
    trying = dev(hello, "--data", served.data)
    trying.says("[dev] the host refused it: ")
    trying.says("; it is tried again when you save")
    [line] = [line for line in trying.said().splitlines() if "the host refused it" in line]
    assert "it gave no reason" not in line

    time.sleep(2.5)  # long enough for two more tries, if there were any
    assert trying.said().count("the host refused it") == 1
    assert starts.read_text() == "x"

    (hello / "runner.py").write_text(good)
    trying.says("attached plugin:me/hello/default")
    assert trying.stop() == 0


def test_a_missing_host_is_mentioned_once(hello: Path, dev: Callable[..., Dev], tmp_path: Path) -> None:
    first = HostProcess(tmp_path / "data").start()
    trying = dev(hello, "--data", first.data)
    trying.says("attached plugin:me/hello/default")
    first.stop()
    missing = "no host to attach to, trying again: No host serves the data directory"
    trying.says(missing)
    assert f"Start one with: {CALLED} serve --data {first.data}\n" in trying.said()
    time.sleep(2.5)  # long enough to be said twice more
    assert trying.said().count("no host to attach to") == 1

    second = HostProcess(tmp_path / "data").start()
    trying.says("attached plugin:me/hello/default", times=2)
    second.stop()
    trying.says(missing, times=2)
    assert trying.stop() == 0


def test_dev_never_goes_to_another_host_than_the_one_asked_for(
    paddock: Command, hello: Path, served: HostProcess, tmp_path: Path
) -> None:
    refused = paddock("runner", "dev", hello, "--data", tmp_path / "empty", env={"PADDOCK_URL": served.url})
    assert refused.returncode == 1
    assert f"Start one with: {CALLED} serve --data {tmp_path / 'empty'}\n" in refused.stderr


@pytest.mark.parametrize("name", [".paddock", "data"])
def test_what_a_host_writes_among_the_files_is_no_save(
    paddock: Command, hello: Path, dev: Callable[..., Dev], name: str
) -> None:
    host = HostProcess(hello / name).start()
    try:
        before = snapshot(hello)
        assert not [path for path in before if f"/{name}/" in path]
        trying = dev(hello, "--data", host.data)
        trying.says("attached plugin:me/hello/default")
        for _ in range(3):
            assert paddock("chat", "--data", host.data, "--agent", "hello", "hi").returncode == 0
        assert snapshot(hello) == before
        assert "saved" not in trying.said()
        assert trying.stop() == 0
    finally:
        host.stop()


def test_a_data_directory_is_no_place_for_a_plugin(paddock: Command, hello: Path) -> None:
    (hello / "paddock.db").write_bytes(b"")
    for command in ("dev", "install"):
        refused = paddock("runner", command, hello)
        assert refused.returncode in {1, 2}
        assert f"{hello} is where a host keeps its data. Move the plugin into a directory of its own." in refused.stderr
