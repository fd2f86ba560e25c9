"""`paddock run`: what it says on leaving works, another conversation is the one that goes on, a port is found."""

import socket
from contextlib import suppress
from pathlib import Path

import warm
from cli.terminals import CALLED, CTRL_D
from cli.test_chat import People
from walk.hosts import wait_until
from warm import Command

AGENT = 'from paddock import Agent\n\nagent = Agent("You are kind.")\n'


def test_the_command_it_prints_on_leaving_goes_on_with_the_conversation_that_was_left(
    person: People, tmp_path: Path
) -> None:
    file, data = tmp_path / "my agent.py", tmp_path / "data"
    file.write_text(AGENT)
    talking = person("run", str(file), "--data", str(data))
    talking.sees("> ")
    talking.press("my name is Bob\n")
    talking.sees("your name is Bob")
    talking.press("/new\n")
    talking.sees("> ")
    talking.press("my name is Ann\n")
    talking.sees("your name is Ann")
    talking.press(CTRL_D)
    talking.sees(f"To go on later: {CALLED} run '{file}' --data {data}\r\n")
    assert talking.leaves() == 0

    again = person("run", str(file), "--data", str(data), "what is my name?")
    again.sees("Your name is Ann.")
    assert again.leaves() == 0


def test_where_it_only_serves_it_takes_another_port_when_the_usual_one_is_taken(
    tmp_path: Path, clean_env: dict[str, str]
) -> None:
    file = tmp_path / "my_agent.py"
    file.write_text(AGENT)
    with socket.socket() as taken:
        with suppress(OSError):  # then somebody else has it, and that is as good
            taken.bind(("127.0.0.1", 8484))
            taken.listen()
        streams = {"stdin": warm.DEVNULL, "stdout": warm.PIPE, "stderr": warm.PIPE}
        serving = warm.Process(["run", file, "--data", tmp_path / "data"], env=clean_env, cwd=tmp_path, **streams)
        try:
            assert serving.stdout is not None
            assert serving.stderr is not None
            ready = serving.stdout.readline()
            assert ready.startswith("Paddock is ready at http://127.0.0.1:"), serving.stderr.read()
        finally:
            serving.terminate()
            assert serving.wait(30) in (0, 2)


def test_a_port_that_was_asked_for_is_not_exchanged(tmp_path: Path, clean_env: dict[str, str]) -> None:
    (tmp_path / "my_agent.py").write_text(AGENT)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        asked = ["run", "my_agent.py", "--port", taken.getsockname()[1]]
        refused = warm.run(asked, env=clean_env, cwd=tmp_path, stdin=warm.DEVNULL)
    assert refused.returncode == 2
    assert "is in use" in refused.stderr


def test_a_directory_is_called_one(paddock: Command) -> None:
    refused = paddock("run", ".", "hello")
    sentence = "paddock: . is a directory; name the Python file with your agent in it.\n"
    assert (refused.returncode, refused.stderr) == (2, sentence)


def test_a_mistake_made_while_talking_is_told_before_the_old_version_answers(person: People, tmp_path: Path) -> None:
    file, data = tmp_path / "my_agent.py", tmp_path / "data"
    file.write_text(AGENT)
    talking = person("run", str(file), "--data", str(data))
    talking.sees("> ")
    file.write_text("agent = Agnt()\n")
    log = data / "host.log"
    wait_until(lambda: "cannot be used" in log.read_text(), 30, "the host seeing the mistake")
    talking.press("my name is Bob\n")
    talking.sees(f"[the old version still answers: {file}")
    talking.sees("your name is Bob")
    file.write_text(AGENT.replace("kind", "brief"))
    wait_until(lambda: "is in force" in log.read_text(), 30, "the host taking the new version up")
    talking.press("my name is Ann\n")
    talking.sees("your name is Ann")
    assert talking.screen.count("the old version") == 1
    talking.press(CTRL_D)
    assert talking.leaves() == 0
