"""`paddock run` at a terminal: what it says on leaving works, and another conversation is the one that goes on."""

from pathlib import Path

from cli.terminals import CALLED, CTRL_D
from cli.test_chat import People

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
