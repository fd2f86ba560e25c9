"""What the guides show is what the program does."""

import asyncio
import re
from pathlib import Path

from cli.conftest import Command
from paddock.cli.scaffold import files
from paddock_sdk.protocol.ids import PluginId
from paddock_sdk.testing import pretend_host

GUIDES = Path(__file__).parents[2] / "docs" / "guides"


def test_the_first_runner_in_the_guide_is_the_one_that_new_writes() -> None:
    [shown, _] = re.findall(r"```python\n(.*?)```", (GUIDES / "first-runner.md").read_text(), re.DOTALL)
    written = files(PluginId("me", "hello"))["runner.py"]
    missing = [line for line in shown.splitlines() if line not in written.splitlines()]
    assert not missing


def test_the_test_in_the_guide_passes() -> None:
    [_, shown] = re.findall(r"```python\n(.*?)```", (GUIDES / "first-runner.md").read_text(), re.DOTALL)
    body = "async def shown():\n" + "".join(f"    {line}\n" for line in shown.splitlines())
    space: dict[str, object] = {"pretend_host": pretend_host, "__name__": "guide"}
    exec(files(PluginId("me", "hello"))["runner.py"], space)
    exec(body, space)
    asyncio.run(space["shown"]())


def test_every_command_is_in_the_guide(paddock: Command) -> None:
    guide = (GUIDES / "command-line.md").read_text()
    for group, pattern in (((), "## paddock {}"), (("runner",), "`{}"), (("keys",), "keys {}")):
        listed = paddock(*group, "--help").stdout.partition("Commands:")[2]
        commands = [line.split()[0] for line in listed.splitlines() if re.match(r"  \w", line)]
        assert commands
        assert not [name for name in commands if name != "version" and pattern.format(name) not in guide]
