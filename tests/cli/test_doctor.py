"""`paddock doctor`: what works, what does not, and what to do about it."""

import socket
from pathlib import Path

from cli.package_makers import a_directory
from paddock.cli import presence
from paddock.runners.packages import InstalledPlugins, read_package
from walk.hosts import HostProcess
from warm import Command


def test_a_healthy_machine_passes_and_nothing_is_left_behind(paddock: Command, tmp_path: Path) -> None:
    seen = paddock("doctor", "--data", tmp_path / "d")
    assert seen.returncode == 0, seen.stdout
    assert "FAIL" not in seen.stdout
    assert "the echo runner starts and answers" in seen.stdout
    assert "will be made by the first start" in seen.stdout
    assert "the host is set to L0" in seen.stdout
    assert seen.stdout.endswith("Everything the host needs works here.\n")
    assert not (tmp_path / "d").exists()


def test_a_running_host_is_recognised_and_its_own_agents_are_spoken_of(served: HostProcess, paddock: Command) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        seen = paddock("doctor", "--data", served.data, "--port", taken.getsockname()[1])
    assert seen.returncode == 0, seen.stdout
    assert f"is in use by a host at {served.url}" in seen.stdout
    assert f"ok    port           the host of this data directory listens at {served.url}" in seen.stdout
    assert f"ok    agents         the host at {served.url} has 2: echo, slow" in seen.stdout


def test_agents_of_a_running_host_that_cannot_answer_are_named(paddock: Command, tmp_path: Path) -> None:
    agents = "agents:\n  echo: {runner: 'plugin:paddock/echo/default'}\n  lost: {runner: 'plugin:no/such/default'}\n"
    host = HostProcess(tmp_path / "data", agents=agents).start()
    try:
        seen = paddock("doctor", "--data", host.data)
    finally:
        host.stop()
    assert seen.returncode == 1
    assert "FAIL  agents         lost: " in seen.stdout
    assert f"agents list --data {host.data}" in seen.stdout


def test_a_host_that_was_killed_is_not_taken_for_one_that_runs(paddock: Command, tmp_path: Path) -> None:
    with presence.announced(tmp_path, url="http://127.0.0.1:1", token="gone"):
        seen = paddock("doctor", "--data", tmp_path, "--port", "0")
    assert seen.returncode == 0, seen.stdout
    assert "can be written and locked" in seen.stdout
    assert "127.0.0.1:1\n" not in seen.stdout


def test_what_is_broken_is_named_with_a_remedy(paddock: Command, tmp_path: Path) -> None:
    data = tmp_path / "d"
    InstalledPlugins(data).install(read_package(a_directory(tmp_path / "s")))
    (data / "plugins" / "me" / "demo" / "runner.py").write_text("changed")
    seen = paddock("doctor", "--data", data)
    assert seen.returncode == 1
    assert "FAIL  plugins        The plugin me/demo was changed after it was installed." in seen.stdout
    assert "-> paddock runner verify" in seen.stdout
    assert "1 problem(s) to solve." in seen.stdout


def test_a_data_directory_that_cannot_be_made_is_named(paddock: Command, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    seen = paddock("doctor", "--data", tmp_path / "file" / "d")
    assert seen.returncode == 1
    assert "FAIL  data directory" in seen.stdout
    seen = paddock("doctor", "--data", "/proc/x")
    assert seen.returncode == 1
    assert "FAIL  data directory /proc/x cannot be made in /proc" in seen.stdout


def test_agents_written_in_python_are_read_as_the_host_reads_them(paddock: Command, tmp_path: Path) -> None:
    file = tmp_path / "my_agent.py"
    file.write_text('from paddock import Agent\n\nquiz = Agent("You host a quiz.")\n')
    seen = paddock("doctor", "--data", tmp_path / "d", env={"PADDOCK_AGENTS": str(file)})
    assert (seen.returncode, f"every agent of {file} has its runner" in seen.stdout) == (0, True), seen.stdout
    checked = paddock("agents", "check", file)
    assert (checked.returncode, "1 agent, default my_agent." in checked.stdout) == (0, True), checked.stderr
    file.write_text('from paddock import Agent\n\nquiz = Agent("You host a quiz."\n')
    assert "line 3: SyntaxError" in paddock("agents", "check", file).stderr


def test_a_program_of_an_mcp_server_that_is_not_there_is_named(paddock: Command, tmp_path: Path) -> None:
    data = tmp_path / "d"
    data.mkdir()
    (data / "paddock.toml").write_text('[mcp_servers.lost]\ncommand = "no-such-program"\n')
    file = tmp_path / "agents.yaml"
    file.write_text("agents: {a: {runner: 'plugin:paddock/echo/default'}}\nmcp_servers: {gone: {command: /no/such}}\n")
    seen = paddock("doctor", "--data", data, env={"PADDOCK_AGENTS": str(file)})
    assert seen.returncode == 0  # the host does without
    assert "note  mcp servers    gone: there is no program /no/such; lost: there is no program no-such-program" in (
        seen.stdout
    )


def test_an_agent_whose_runner_is_missing_is_named(paddock: Command, tmp_path: Path) -> None:
    file = tmp_path / "agents.yaml"
    file.write_text("agents:\n  lost: {runner: 'plugin:no/such/default'}\n")
    seen = paddock("doctor", "--data", tmp_path / "d", env={"PADDOCK_AGENTS": str(file)})
    assert seen.returncode == 1
    assert "FAIL  agents         lost needs no/such, which is not installed" in seen.stdout
    file.write_text("agents:\n  lost: {runner: nonsense}\n")
    seen = paddock("doctor", "--data", tmp_path / "d", "--agents", file)
    assert "FAIL  agents" in seen.stdout
    assert "line 2: agents.lost.runner is wrong" in seen.stdout
