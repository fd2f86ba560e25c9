"""`paddock runner new`: a plugin that works and has a passing test, small enough to read before changing it."""

import getpass
import re
import shlex
import sys
from pathlib import Path

from paddock.cli.output import USAGE, CommandError, fails_with, program, write
from paddock_sdk.protocol.ids import PluginId

PLUGIN_FILE = """\
# What this plugin is, how it starts, and the most it may ever ask for.
[plugin]
author = "{author}"
name = "{name}"
version = "0.1.0"
description = "Says hello and counts the turns of a conversation."
command = ["python", "runner.py"]

# A person agrees to these when the plugin is installed; asking for less is asking for trust.
[permissions]
storage = ["plugin"]

[python]
requirements = []
"""

RUNNER = '''\
"""{title}: greets, and remembers how often it was spoken to in this conversation."""

from paddock_sdk import AgentRunner, HostApi, Results, RunContext, delta, message, serve


class {title}(AgentRunner):
    label = "{title}"
    description = "Says hello and counts the turns of a conversation."
    capabilities = {{"streaming": True}}
    permissions = {{"storage": ["plugin"]}}

    async def run(self, ctx: RunContext, api: HostApi) -> Results:
        turns = (await api.state.get("conversation", "turns") or 0) + 1
        await api.state.set("conversation", "turns", turns)
        hello, count = f"Hello! You said {{ctx.text!r}}. ", f"That was turn {{turns}}."
        yield delta(hello)
        yield delta(count)
        yield message(hello + count)


if __name__ == "__main__":
    serve({title}())
'''

TEST = '''\
"""The runner on its own: real frames, a pretend host. Run with: python test_runner.py (or python -m pytest)"""

import asyncio

from paddock_sdk.testing import pretend_host
from runner import {title}


def test_it_greets_and_counts_the_turns() -> None:
    async def two_turns() -> list[str]:
        async with pretend_host({title}()) as host:
            return [(await host.run("hi")).text, (await host.run("again")).text]

    first, second = asyncio.run(two_turns())
    assert "'hi'" in first
    assert first.endswith("turn 1.")
    assert second.endswith("turn 2.")


if __name__ == "__main__":
    test_it_greets_and_counts_the_turns()
    print("passed")
'''

README = """\
# {name}

A Paddock plugin. It says hello and counts the turns of a conversation.

    python test_runner.py               test it, without a host; needs the paddock-sdk package and nothing else
    paddock runner dev .                try it on a running host; it reloads when you save
    paddock runner install .            install it; a running host takes it up by itself

Talk to it with `paddock chat --agent {name}`. A host that has an agents file gives it its name there, with
configuration and limits:

```yaml
agents:
  {name}:
    runner: plugin:{author}/{name}/default
```
"""


def new(name: str, *, author: str | None) -> None:
    """Write the plugin into ./NAME, which must not exist yet."""
    with fails_with(ValueError, says="{}.".format, exit_code=USAGE):
        plugin = PluginId(author or _user_name(), name)
    target = Path.cwd() / plugin.name
    if target.exists():
        raise CommandError(f"{target} exists already. Choose another name, or remove it first.", exit_code=USAGE)
    for file, text in files(plugin).items():
        path = target / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    write(f"Wrote the plugin {plugin} to {target}\n")
    write(f"  test  {shlex.quote(sys.executable)} {plugin.name}/test_runner.py\n")
    write(f"  try   {program()} runner dev {plugin.name}\n")


def files(plugin: PluginId) -> dict[str, str]:
    title = _class_name(plugin.name)
    templates = {"paddock-plugin.toml": PLUGIN_FILE, "runner.py": RUNNER, "test_runner.py": TEST, "README.md": README}
    return {file: text.format(author=plugin.author, name=plugin.name, title=title) for file, text in templates.items()}


def _user_name() -> str:
    """Whatever the system calls this user, made fit for a name."""
    try:
        name = getpass.getuser()
    except (OSError, KeyError):
        name = ""
    return re.sub(r"[^A-Za-z0-9_]+", "-", name).strip("-") or "me"


def _class_name(name: str) -> str:
    words = "".join(word[:1].upper() + word[1:] for word in re.split(r"[^A-Za-z0-9]+", name))
    return words if words[:1].isalpha() else f"Runner{words}"
