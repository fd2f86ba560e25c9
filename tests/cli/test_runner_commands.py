"""`paddock runner new`, `install`, `list`, `verify`, `remove`: from nothing to an installed plugin that answers."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.package_makers import HONEST, PLUGIN, a_directory, a_tar, a_zip
from cli.terminals import CALLED, Person
from paddock.runners.processes.isolation import active_level
from walk.hosts import HostProcess, wait_until
from warm import Command

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
    for own in (["-m", "pytest", "-q", "-p", "no:cacheprovider"], ["test_runner.py"]):
        passed = subprocess.run(
            [sys.executable, *own], cwd=tmp_path / "hello", capture_output=True, text=True, check=False
        )
        assert passed.returncode == 0, passed.stdout + passed.stderr
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


@pytest.mark.parametrize("name", ["local-agent", "echo"])
def test_a_package_takes_the_place_of_a_runner_that_is_there_only_when_that_is_said(
    paddock: Command, tmp_path: Path, name: str
) -> None:
    file = PLUGIN.replace('"me"', '"paddock"').replace('"demo"', f'"{name}"')
    source = a_zip(tmp_path / "p.zip", {**HONEST, "paddock-plugin.toml": file.encode()})
    refused = paddock("runner", "install", source, "--yes", "--data", tmp_path / "d")
    assert refused.returncode == 1
    assert f"There is a plugin paddock/{name} already" in refused.stderr
    done = paddock("runner", "install", source, "--yes", "--replace", "--data", tmp_path / "d")
    assert done.returncode == 0, done.stderr
    assert "replaces  the one in " in done.stdout


def test_installing_shows_what_it_asks_for_and_needs_a_yes(
    paddock: Command, person: Callable[..., Person], tmp_path: Path
) -> None:
    source = a_zip(tmp_path / "p.zip")
    refused = paddock("runner", "install", source, "--data", tmp_path / "d")
    assert refused.returncode == 2
    assert "read the conversation it is in" in refused.stdout
    assert "marks host_only, or that sound like programs, paths or addresses, are made in the agents" in refused.stdout
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
        wait_until(lambda: "was changed after it was installed" in "".join(host.output), 30, "the warning")
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


def test_what_new_prints_can_be_typed_as_it_is_and_needs_no_test_library(
    paddock: Command, tmp_path: Path, clean_env: dict[str, str]
) -> None:
    made = paddock("runner", "new", "hello", "--author", "me").stdout
    assert f"  try   {CALLED} runner dev hello\n" in made
    [command] = re.findall(r"^  test  (.*)$", made, re.MULTILINE)
    (tmp_path / "pytest.py").write_text("raise SystemExit('there is no pytest here')\n")
    env = {**clean_env, "PYTHONPATH": str(tmp_path)}

    passed = subprocess.run(command, shell=True, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)

    assert (passed.returncode, passed.stdout) == (0, "passed\n"), passed.stderr
    runner = tmp_path / "hello" / "runner.py"
    runner.write_text(runner.read_text().replace("turn {turns}.", "turn 1."))
    failed = subprocess.run(command, shell=True, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert failed.returncode == 1
    assert "AssertionError" in failed.stderr


# --- what is agreed to ------------------------------------------------------------------------------------------------


NETWORK = PLUGIN + '[isolation]\nlevel = "L1"\nnetwork = true\n'
AT_L1 = "at isolation L1: apart from your files" if active_level().level == "L1" else "at isolation L1, which cannot"


def test_the_network_and_the_level_are_shown_before_the_yes_and_in_the_list(paddock: Command, tmp_path: Path) -> None:
    source = a_directory(tmp_path / "s", {**HONEST, "paddock-plugin.toml": NETWORK.encode()})
    at = ("--data", tmp_path / "d")
    shown = paddock("runner", "install", source, "--yes", *at).stdout
    assert "    - use this machine's network\n" in shown
    assert AT_L1 in shown
    assert "L0" not in shown
    listed = paddock("runner", "list", *at).stdout
    assert "read the conversation it is in; use this machine's network\n" in listed
    assert f"  runs    {AT_L1}" in listed


def test_the_memory_that_it_may_use_is_shown_before_the_yes(paddock: Command, tmp_path: Path) -> None:
    asking = f"{NETWORK}memory_mb = 3000\n".encode()
    source = a_directory(tmp_path / "s", {**HONEST, "paddock-plugin.toml": asking})
    shown = paddock("runner", "install", source, "--data", tmp_path / "d").stdout
    assert "  Each of its processes may use 3000 MiB of memory.\n" in shown
    env = {"PADDOCK_PLUGIN_MEMORY_MB": "1000"}
    shown = paddock("runner", "install", source, "--data", tmp_path / "d", env=env).stdout
    assert "3000 MiB of memory, and this host gives at most 1000 (plugin_memory_mb): it refuses to start it." in shown


def test_a_plugin_that_does_not_ask_for_a_level_gets_the_one_the_host_is_set_to(
    paddock: Command, tmp_path: Path
) -> None:
    a_directory(tmp_path / "s")
    at = ("--data", tmp_path / "d")
    at_l0 = paddock("runner", "install", "s", "--yes", *at).stdout
    assert "It runs at isolation L0: as your user, with your files and this machine's network." in at_l0
    assert "use this machine's network\n" not in at_l0
    (tmp_path / "d" / "paddock.toml").write_text('isolation = "L1"\n')
    assert AT_L1 in paddock("runner", "list", *at).stdout
    assert "isolation L0" in paddock("runner", "list", *at, env={"PADDOCK_ISOLATION": "L0"}).stdout


def test_what_is_installed_already_is_refused_before_anything_is_shown(paddock: Command, tmp_path: Path) -> None:
    at = (a_zip(tmp_path / "p.zip"), "--data", tmp_path / "d")
    assert paddock("runner", "install", *at, "--yes").returncode == 0
    again = paddock("runner", "install", *at)
    assert (again.returncode, again.stdout) == (1, "")
    assert "me/demo 1.0 is already installed. Use --replace" in again.stderr
    assert "  replaces  1.0\n" in paddock("runner", "install", *at, "--replace", "--yes").stdout


@pytest.mark.parametrize("name", [".paddock", "data"])
def test_a_live_data_directory_is_never_part_of_a_package(paddock: Command, tmp_path: Path, name: str) -> None:
    source = a_directory(tmp_path / "s")
    host = HostProcess(source / name).start()
    try:
        token = (source / name / "local-token").read_text()
        assert paddock("runner", "install", source, "--yes", "--data", tmp_path / "d").returncode == 0
        inside = paddock("runner", "install", ".", "--yes", "--data", name, cwd=source)  # into itself
        assert inside.returncode == 0, inside.stderr
    finally:
        host.stop()
    for place in (tmp_path / "d", source / name):
        installed = place / "plugins" / "me" / "demo"
        assert sorted(path.name for path in installed.rglob("*")) == sorted(HONEST)
        assert not [path for path in installed.rglob("*") if token.strip() in path.read_text()]
        assert paddock("runner", "verify", "--data", place).returncode == 0


def test_what_was_left_out_is_said(paddock: Command, tmp_path: Path) -> None:
    source = a_directory(tmp_path / "s", {**HONEST, "lib/data/paddock.db": b"x"})
    shown = paddock("runner", "install", source, "--yes", "--data", tmp_path / "d").stdout
    assert "  Left out: lib/data, where a host keeps its data\n" in shown
