"""What the guides show is what the program does."""

import asyncio
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from paddock.cli.plugin_work.scaffold import files
from paddock.host.agents.file import agents_schema, in_force, read_agents
from paddock.host.agents.shapes import AgentShape
from paddock_sdk import AgentRunner, HostApi, HostCallError, Results, RunContext, message
from paddock_sdk.protocol.ids import PluginId
from paddock_sdk.testing import pretend_host, pretend_host_for
from walk.hosts import wait_until
from warm import Command

TOP = Path(__file__).parents[2]
GUIDES = TOP / "docs" / "guides"


def test_the_first_runner_in_the_guide_is_the_one_that_new_writes() -> None:
    [shown, _] = re.findall(r"```python\n(.*?)```", (GUIDES / "first-runner.md").read_text(), re.DOTALL)
    written = files(PluginId("me", "hello"))["runner.py"]
    missing = [line for line in shown.splitlines() if line not in written.splitlines()]
    assert not missing


def test_the_test_in_the_guide_passes() -> None:
    [_, shown] = re.findall(r"```python\n(.*?)```", (GUIDES / "first-runner.md").read_text(), re.DOTALL)
    body = "async def shown():\n" + "".join(f"    {line}\n" for line in shown.splitlines())
    space: dict[str, Any] = {"pretend_host": pretend_host, "__name__": "guide"}
    exec(files(PluginId("me", "hello"))["runner.py"], space)
    exec(body, space)
    asyncio.run(space["shown"]())


def test_every_command_is_in_the_guide(paddock: Command) -> None:
    guide = (GUIDES / "command-line.md").read_text()
    for group, pattern in (
        ((), "## paddock {}"),
        (("runner",), "`{}"),
        (("keys",), "keys {}"),
        (("agents",), "agents {}"),
        (("knowledge",), "`{}"),
        (("harness",), "harness {}"),
        (("admin",), "| `{}"),
        (("approvals",), "approvals {}"),
        (("deliveries",), "deliveries {}"),
    ):
        listed = paddock(*group, "--help").stdout.partition("Commands:")[2]
        commands = [line.split()[0] for line in listed.splitlines() if re.match(r"  \w", line)]
        assert commands
        assert not [name for name in commands if name != "version" and pattern.format(name) not in guide]


def test_every_key_of_the_agents_file_is_in_the_guide_and_its_example_is_read() -> None:
    guide = (GUIDES / "agents.md").read_text()
    [small, team, whole] = re.findall(r"```yaml\n(.*?)```", guide, re.DOTALL)
    assert list(read_agents(team, "agents.md").resources.models) == ["fast"]
    assert in_force(read_agents(small, "agents.md"), 100).default_agent_id == "support"
    assert in_force(read_agents(whole, "agents.md"), 100).default_agent_id == "support"
    shown = set(yaml.safe_load(whole)["agents"]["support"])
    with pytest.raises(Exception, match="known are: ") as unknown:
        in_force(read_agents("agents: {a: {zzz: 1, runner: plugin:a/b/c}}", "x"), 100)
    known = set(str(unknown.value).partition("known are: ")[2].split(", "))
    assert known == shown
    for key, field in AgentShape.model_fields.items():
        default = "needed" if field.is_required() else _as_yaml(field.get_default(call_default_factory=True))
        assert f"| `{key}` | {default} | {field.description}" in guide, key


def _as_yaml(default: Any) -> str:
    words = {None: "unset", True: "`true`", False: "`false`", "": "empty"}
    if isinstance(default, list):
        return f"`[{', '.join(default)}]`"
    return words.get(default) or f"`{default}`" if not isinstance(default, dict) else "`{}`"


def test_the_shipped_schema_of_the_agents_file_is_the_one_the_host_checks_with(paddock: Command) -> None:
    shipped = (TOP / "docs" / "agents.schema.json").read_text()
    assert paddock("agents", "schema").stdout == shipped
    assert shipped == agents_schema(), "paddock agents schema > docs/agents.schema.json"


def test_the_runner_in_the_readme_answers_and_passes_the_test_that_new_writes(tmp_path: Path) -> None:
    [_, shown] = re.findall(r"```python\n(.*?)```", (TOP / "README.md").read_text(), re.DOTALL)
    written = files(PluginId("me", "greeter"))
    for name, text in {**written, "runner.py": shown}.items():
        (tmp_path / name).write_text(text)
    assert len(shown.splitlines()) < len(written["runner.py"].splitlines())

    async def answer() -> str:
        async with pretend_host_for([sys.executable, "runner.py"], cwd=tmp_path) as host:
            return (await host.run("you")).text

    assert asyncio.run(answer()) == "Hello! You said 'you'. That was turn 1."
    tested = subprocess.run(
        [sys.executable, "test_runner.py"],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert tested.stdout == "passed\n", tested.stderr


# --- the guides as somebody types them ------------------------------------------------------------------------------


class Typist:
    """Types commands in one directory; those that go on for ever run in the background, as in another terminal."""

    def __init__(self, directory: Path, env: dict[str, str]) -> None:
        self.directory = directory
        self._env = {**env, "PATH": f"{Path(sys.executable).parent}:{env['PATH']}", "PADDOCK_PORT": "0"}
        self._background: list[subprocess.Popen[bytes]] = []

    def types(self, command: str) -> str:
        words = shlex.split(command, comments=True)
        if words[1:3] == ["runner", "install"]:
            words.append("--yes")  # a person would answer y
        done = subprocess.run(
            words, cwd=self.directory, env=self._env, capture_output=True, text=True, check=False, timeout=100
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout

    def leaves_running(self, command: str, until: str) -> None:
        log = self.directory / f"terminal-{len(self._background)}"
        with log.open("wb") as file:
            words = shlex.split(command, comments=True)
            started = subprocess.Popen(words, cwd=self.directory, env=self._env, stdout=file, stderr=file)
        self._background.append(started)
        wait_until(lambda: until in log.read_text(), 60, f"{until!r} after {command}")

    def interrupts_all(self) -> None:
        for one in reversed(self._background):
            one.send_signal(2)
            one.wait(30)
        self._background.clear()


@contextmanager
def a_typist(directory: Path, env: dict[str, str]) -> Generator[Typist]:
    typist = Typist(directory, env)
    try:
        yield typist
    finally:
        typist.interrupts_all()


def commands_in(page: Path) -> list[str]:
    """What a page tells people to type: indented or fenced lines that start with one of our programs."""
    return re.findall(r"^(?:    )?((?:paddock|python) .*)$", page.read_text(), re.MULTILINE)


def test_the_first_runner_guide_works_as_it_is_written(tmp_path: Path, clean_env: dict[str, str]) -> None:
    new, test, serve, dev, chat, install = commands_in(GUIDES / "first-runner.md")
    with a_typist(tmp_path, clean_env) as typist:
        typist.types(new)
        assert typist.types(test) == "passed\n"
        typist.leaves_running(serve, until="ready at")
        typist.leaves_running(dev, until="try it: paddock chat --agent hello")
        assert typist.types(chat).startswith("Hello! You said 'hi'.")
        typist.types(install)
        typist.interrupts_all()
        typist.leaves_running(serve, until="ready at")
        assert typist.types(chat).startswith("Hello! You said 'hi'.")


@pytest.mark.usefixtures("node")
def test_the_node_example_is_tried_as_its_page_says(tmp_path: Path, clean_env: dict[str, str]) -> None:
    shutil.copytree(TOP / "examples", tmp_path / "examples")
    dev, chat, install = commands_in(TOP / "examples" / "node-runner" / "README.md")
    with a_typist(tmp_path, clean_env) as typist:
        typist.leaves_running("paddock serve", until="ready at")
        typist.leaves_running(dev, until="try it: ")
        assert "hello" in typist.types(chat)
        typist.types(install)


def test_the_counter_in_the_guide_counts() -> None:
    shown = re.findall(r"```python\n(.*?)```", (GUIDES / "keeping-things.md").read_text(), re.DOTALL)[0]
    body = "async def count(api):\n" + "".join(f"    {line}\n" for line in shown.splitlines())
    space: dict[str, Any] = {"HostCallError": HostCallError, "__name__": "guide"}
    exec(body, space)

    class Counter(AgentRunner):
        permissions = {"storage": ["plugin"]}  # noqa: RUF012

        async def run(self, ctx: RunContext, api: HostApi) -> Results:
            await space["count"](api)
            yield message("counted")

    async def twice() -> object:
        async with pretend_host(Counter()) as host:
            await host.run("one")
            await host.run("two")
            return host.state["actor"]["visits"]

    assert asyncio.run(twice()) == 2


def test_the_knowledge_guide_works_as_it_is_written(tmp_path: Path, clean_env: dict[str, str]) -> None:
    page = GUIDES / "knowledge.md"
    create, add, search, ask, listing, delete_one, delete_all = commands_in(page)
    [handbook] = re.findall(r"```markdown\n(.*?)```", page.read_text(), re.DOTALL)
    [shown, answered] = re.findall(r"```text\n(.*?)\n```", page.read_text(), re.DOTALL)
    (tmp_path / "handbook.md").write_text(handbook)
    with a_typist(tmp_path, clean_env) as typist:
        typist.leaves_running("paddock serve --port 0", until="ready at")
        typist.types(create)
        assert typist.types(add) == "handbook.md: 3 passages\n"
        found = typist.types(search)
        assert shown in found.splitlines()[0]
        assert "十五天年假" in found
        assert typist.types(ask) == f"{answered}\n"
        assert typist.types(add) == "handbook.md: unchanged: handbook.md has the same content\n"
        assert "handbook.md" in typist.types(listing)
        typist.types(delete_one)
        assert typist.types(search) == ""
        typist.types(delete_all)


def test_the_agents_example_of_the_knowledge_guide_is_read() -> None:
    [example] = re.findall(r"```yaml\n(.*?)```", (GUIDES / "knowledge.md").read_text(), re.DOTALL)
    [agent] = in_force(read_agents(example, "knowledge.md"), 100).list("default")
    assert agent.agent_id == "helper"
    assert agent.policy.knowledge_bases != "all"
