"""`paddock runner ...`: from nothing to an installed plugin that answers, and trying it while writing it."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.conftest import Command
from cli.package_makers import HONEST, PLUGIN, a_directory, a_tar, a_zip
from cli.terminals import PADDOCK, Person
from walk.hosts import HostProcess, wait_until

AGENTS = 'agents:\n  hello: {runner: "plugin:me/hello/default"}\n'


def test_a_new_plugin_passes_its_own_test_and_answers_once_installed(paddock: Command, tmp_path: Path) -> None:
    made = paddock("runner", "new", "hello", "--author", "me")
    assert made.returncode == 0
    assert sorted(path.name for path in (tmp_path / "hello").iterdir()) == [
        "README.md",
        "paddock-plugin.toml",
        "runner.py",
        "test_runner.py",
    ]
    own = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    passed = subprocess.run(own, cwd=tmp_path / "hello", capture_output=True, text=True, check=False)
    assert passed.returncode == 0, passed.stdout
    assert paddock("runner", "install", "hello", "--yes", "--data", "data").returncode == 0

    host = HostProcess(tmp_path / "data").start()
    try:
        said = paddock("chat", "--data", host.data, "--agent", "hello", "hi")
        assert said.stdout == "Hello! You said 'hi'. That was turn 1.\n", said.stderr
        assert paddock("runner", "verify", "--data", host.data).returncode == 0
    finally:
        host.stop()


@pytest.mark.parametrize(
    ("name", "sentence"), [("../x", "is not a name"), ("-x", "o such option"), ("taken", "exists already")]
)
def test_a_name_that_cannot_be_is_one_sentence(paddock: Command, tmp_path: Path, name: str, sentence: str) -> None:
    (tmp_path / "taken").mkdir()
    refused = paddock("runner", "new", name)
    assert refused.returncode == 2
    assert sentence in refused.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_installing_shows_what_it_asks_for_and_needs_a_yes(
    paddock: Command, person: Callable[..., Person], tmp_path: Path
) -> None:
    source = a_zip(tmp_path / "p.zip")
    refused = paddock("runner", "install", source, "--data", tmp_path / "d")
    assert refused.returncode == 2
    assert "read the conversation it is in" in refused.stdout
    assert "add --yes" in refused.stderr
    assert not (tmp_path / "d").exists()

    undecided = person("runner", "install", source, "--data", tmp_path / "d")
    undecided.sees("Install it? [y/N]")
    undecided.press("\n")
    undecided.sees("Not installed.")
    assert undecided.leaves() == 1
    assert not (tmp_path / "d").exists()

    decided = person("runner", "install", source, "--data", tmp_path / "d")
    decided.sees("Install it? [y/N]")
    decided.press("y\n")
    decided.sees("Installed me/demo 1.0.")
    assert decided.leaves() == 0


def test_no_code_of_a_package_runs_before_the_yes(paddock: Command, tmp_path: Path) -> None:
    trap = f"open({str(tmp_path / 'sprung')!r}, 'w')\n".encode()
    files = {**HONEST, "runner.py": trap, "setup.py": trap, "conftest.py": trap, "sitecustomize.py": trap}
    source = a_directory(tmp_path / "s", files)
    paddock("runner", "install", source, "--data", tmp_path / "d", cwd=source)
    assert not (tmp_path / "sprung").exists()


def test_a_package_cannot_paint_over_what_it_asks_for(paddock: Command, tmp_path: Path) -> None:
    nasty = PLUGIN.replace('"A demo."', '"nice\\u001b[2K\\r\\n  It asks for nothing\\u202e"')
    source = a_directory(tmp_path / "s", {**HONEST, "paddock-plugin.toml": nasty.encode()})
    shown = paddock("runner", "install", source, "--data", tmp_path / "d").stdout
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "\n  It asks for nothing" not in shown


def test_list_replace_verify_and_remove(paddock: Command, tmp_path: Path) -> None:
    at = ("--data", tmp_path / "d")
    assert "No plugins are installed" in paddock("runner", "list", *at).stdout
    assert paddock("runner", "install", a_tar(tmp_path / "p.tgz"), "--yes", *at).returncode == 0
    again = paddock("runner", "install", tmp_path / "p.tgz", "--yes", *at)
    assert again.returncode == 1
    assert "Use --replace" in again.stderr
    assert paddock("runner", "install", tmp_path / "p.tgz", "--yes", "--replace", *at).returncode == 0

    listed = paddock("runner", "list", *at).stdout
    assert listed.startswith("me/demo  1.0  ok\n  sha256  ")
    assert "read the conversation it is in" in listed

    (tmp_path / "d" / "plugins" / "me" / "demo" / "runner.py").write_text("changed")
    checked = paddock("runner", "verify", *at)
    assert checked.returncode == 1
    assert "me/demo was changed after it was installed" in checked.stderr
    assert "me/demo  1.0  CHANGED" in paddock("runner", "list", *at).stdout

    assert paddock("runner", "remove", "me/demo", *at).returncode == 0
    assert paddock("runner", "remove", "me/demo", *at).returncode == 1
    assert "No plugin demo is installed" in paddock("runner", "remove", "demo", *at).stderr


def test_a_changed_plugin_is_not_loaded_and_the_host_says_so(paddock: Command, tmp_path: Path) -> None:
    paddock("runner", "new", "hello", "--author", "me")
    paddock("runner", "install", "hello", "--yes", "--data", "data")
    runner = tmp_path / "data" / "plugins" / "me" / "hello" / "runner.py"
    runner.write_text(runner.read_text() + "\n")
    host = HostProcess(tmp_path / "data", agents=AGENTS).start()
    try:
        wait_until(lambda: "was changed after it was installed" in "".join(host.output), 5, "the warning")
        said = paddock("chat", "--data", host.data, "hi")
        assert said.returncode == 1
    finally:
        host.stop()


def test_a_plugin_with_requirements_gets_an_environment_with_this_very_sdk(paddock: Command, tmp_path: Path) -> None:
    wheel = _a_wheel(tmp_path / "wheels", "tinydep", "1.0")
    needs = PLUGIN.replace("[permissions]", "[python]\nrequirements = ['tinydep>=1']\n[permissions]")
    source = a_directory(tmp_path / "s", {**HONEST, "paddock-plugin.toml": needs.encode()})
    env = {"PIP_FIND_LINKS": f"{wheel.parent} {os.environ.get('PIP_FIND_LINKS', '')}"}

    done = paddock("runner", "install", source, "--yes", "--data", tmp_path / "d", env=env)

    assert done.returncode == 0, done.stderr
    assert "It needs these Python packages: tinydep>=1" in done.stdout
    python = tmp_path / "d" / "plugins" / "me" / "demo" / ".venv" / "bin" / "python"
    code = (
        "import tinydep, paddock_sdk, importlib.util as u; print(tinydep.V, u.find_spec('paddock'), paddock_sdk.serve)"
    )
    seen = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert seen.stdout.startswith("1.0 None <function serve")
    assert paddock("runner", "verify", "--data", tmp_path / "d").returncode == 0


def _a_wheel(place: Path, name: str, version: str) -> Path:
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": f"V = {version!r}\n".encode(),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": b"",
    }
    place.mkdir()
    return a_zip(place / f"{name}-{version}-py3-none-any.whl", files)


# --- dev ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def hello(paddock: Command, tmp_path: Path) -> Path:
    assert paddock("runner", "new", "hello", "--author", "me").returncode == 0
    return tmp_path / "hello"


class Dev:
    """`paddock runner dev` in the background."""

    def __init__(self, *arguments: object, env: dict[str, str], log: Path) -> None:
        self._log = log
        with log.open("w") as file:
            command = [PADDOCK, "runner", "dev", *map(str, arguments)]
            self.process = subprocess.Popen(command, env=env, stderr=file, stdin=subprocess.DEVNULL)

    def says(self, text: str, times: int = 1) -> None:
        wait_until(lambda: self._log.read_text().count(text) >= times, 20, f"{text!r} in {self._log.read_text()!r}")

    def stop(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(15)


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
            one.process.wait(10)


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


@pytest.mark.skipif(shutil.which("node") is None and not os.environ.get("CI"), reason="node is not installed")
def test_a_plugin_in_another_language_is_tried_the_same_way(
    paddock: Command, dev: Callable[..., Dev], tmp_path: Path
) -> None:
    example = shutil.copytree(Path(__file__).parents[2] / "examples" / "node-runner", tmp_path / "node")
    agents = 'agents:\n  node: {runner: "plugin:examples/node-counter/default"}\n'
    host = HostProcess(tmp_path / "data", agents=agents).start()
    try:
        trying = dev(example, "--data", host.data)
        trying.says('try it: paddock chat --agent node "hello"')
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
    wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), 10, "the grandchild")
    trying.stop()
    pid = int((tmp_path / "pid").read_text())
    wait_until(lambda: not _runs(pid), 5, "the grandchild being gone")


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
    assert time.monotonic() - started < 10
