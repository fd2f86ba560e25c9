"""What the tutorial and the table of permissions say is so."""

import re
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import clean_env  # noqa: F401 - a fixture
from paddock.cli.hosting import run
from paddock.host.agents.shapes import AgentShape
from paddock.rules.access.permissions import FILLS, GIVES, OPENS
from paddock.settings import Settings
from paddock_sdk import AgentRunner, HostApi, Results, RunContext, artifact_created, message
from paddock_sdk.testing import pretend_host
from walk.hosts import PADDOCK, HostProcess

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
RESOURCES = (GUIDES / "resources.md").read_text()
PIECE = re.compile(r"```(python|text)\n(.*?)```|^    (paddock [^\n]*)$", re.DOTALL | re.MULTILINE)


def shell(command: str, place: Path, env: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    """What is typed there, by somebody who has `paddock` on the PATH."""
    env = {**env, "PATH": f"{PADDOCK.parent}:{env['PATH']}"}
    return subprocess.run(
        ["bash", "-c", command], cwd=place, env=env, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.timeout(300)  # seven starts of a host, one after the other
def test_the_tutorial_works_as_it_is_written(tmp_path: Path, clean_env: dict[str, str]) -> None:  # noqa: F811
    """Code is written into the file, commands are typed, and what comes out is what the page shows."""
    code, said, steps = "", "", 0
    page = (GUIDES / "tutorial.md").read_text()
    env = {name: value for name, value in clean_env.items() if not name.endswith("_API_KEY")}
    for kind, text, command in PIECE.findall(page):
        if kind == "python":
            code = text if "from paddock import" in text else code[: code.index("agent = ")] + text
            (tmp_path / "my_agent.py").write_text(code)
            assert len(code.splitlines()) <= 15
        elif kind == "text":
            assert said == text
            steps += 1
        else:
            done = shell(command, tmp_path, env)
            shown = [line for line in done.stderr.splitlines(keepends=True) if line.startswith("The run failed")]
            said = done.stdout or "".join(shown)
    assert steps == 7


def test_the_first_agent_of_the_readme_talks_while_the_host_of_make_run_goes_on(
    tmp_path: Path,
    clean_env: dict[str, str],  # noqa: F811
) -> None:
    """Its commands are typed one after the other, so the host that the page started first is still there."""
    page = (GUIDES.parents[1] / "README.md").read_text()
    part = page[page.index("## A first agent") : page.index("## A first runner")]
    [code] = re.findall(r"```python\n(.*?)```", part, re.DOTALL)
    [typed] = re.findall(r"^\.venv/bin/(.*)$", part, re.MULTILINE)
    (tmp_path / "my_agent.py").write_text(code)
    host = HostProcess(tmp_path / ".paddock").start()
    try:
        refused = shell("paddock run my_agent.py 'my name is Ann'", tmp_path, clean_env)
        assert refused.returncode == 2
        [own] = re.findall(r"of its own: (.*?), or", refused.stderr)
        for command in (typed.partition("#")[0], own):
            done = shell(f"{command} 'my name is Ann'", tmp_path, clean_env)
            assert "your name is Ann" in done.stdout, done.stderr
    finally:
        host.kill()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("none.py hi", "There is no file none.py."),
        ("agents.yaml hi", "serve --agents agents.yaml"),
        ("notes.txt hi", "notes.txt is no Python file"),
        ("my_agent.py ' '", 'run my_agent.py "hello"'),
    ],
)
def test_what_cannot_be_run_is_said_in_the_words_that_were_typed(
    tmp_path: Path,
    clean_env: dict[str, str],  # noqa: F811
    words: str,
    sentence: str,
) -> None:
    for name in ("agents.yaml", "notes.txt"):
        (tmp_path / name).write_text("agents: {}\n")
    (tmp_path / "my_agent.py").write_text("from paddock import Agent\n\nagent = Agent('Be brief.')\n")
    refused = shell(f"paddock run {words}", tmp_path, clean_env)
    assert refused.returncode == 2
    assert sentence in refused.stderr
    assert "--agents)" not in refused.stderr
    assert not (tmp_path / ".paddock").exists()


def test_a_port_that_is_taken_at_the_last_moment_is_exchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Between the look whether it is free and the start of the host."""
    file = tmp_path / "my_agent.py"
    file.write_text("from paddock import Agent\n\nagent = Agent('Be brief.')\n")
    with socket.create_server(("127.0.0.1", 0)) as somebody:
        taken = somebody.getsockname()[1]
        monkeypatch.setattr(run, "_port", lambda _: taken)
        assert run.run(file, Settings(data=tmp_path / "data", agents=file), "my name is Ann", new=False) == 0
    assert "your name is Ann" in capfd.readouterr().out


def test_every_permission_is_in_the_table_with_what_it_opens() -> None:
    opens = {
        f"`{kind}: {literal}`": ", ".join(f"`{call}`" for call in sorted(calls))
        for (kind, literal), calls in OPENS.items()
    }
    opens |= {f"`{kind}: {literal}`": f"fills `{place}`" for (kind, literal), place in FILLS.items()}
    opens |= {
        "`mcp: use`": "gives the run an MCP endpoint of its own, which opens nothing besides",
        "`working_directory: use`": "gives the run a directory on the host's machine",
    }
    assert len(opens) == len(OPENS) + len(FILLS) + len(GIVES)
    listed = dict(re.findall(r"^\| (`\w+: \w+`) \| (.*) \|$", (GUIDES / "permissions.md").read_text(), re.MULTILINE))
    assert listed == opens


def test_every_resource_has_a_page() -> None:
    rows = re.findall(r"^\| [^|]+ \| `(\w+)` \| ([^|]+) \| \[[^]]+\]\(([\w.-]+)", RESOURCES, re.MULTILINE)
    kinds = {kind for kind, _ in (*OPENS, *FILLS, *GIVES)} | {"platform_api"}
    assert {kind for kind, _, _ in rows} == kinds
    assert {name for _, _, page in rows for name in [page] if not (GUIDES / name).is_file()} == set()
    keys = {key for _, keys, _ in rows for key in re.findall(r"`(\w+)`", keys)}
    assert keys <= AgentShape.model_fields.keys()


@pytest.mark.anyio
@pytest.mark.parametrize("page", ["history", "event-log", "artifacts", "state", "storage"])
async def test_what_a_page_of_a_resource_shows_is_granted_and_works(page: str) -> None:
    shown = "".join(re.findall(r"```python\n(.*?)```", (GUIDES / f"{page}.md").read_text(), re.DOTALL))
    body = "".join(f"    {line}\n" for line in shown.splitlines())
    space: dict[str, Any] = {"artifact_created": artifact_created, "message": message}
    exec(f"async def run(ctx, api):\n{body}    yield message('done')\n", space)

    class Shown(AgentRunner):
        permissions = {  # noqa: RUF012
            "history": ["page", "search"],
            "events": ["get", "page"],
            "artifacts": ["metadata", "read", "create"],
            "storage": ["plugin"],
        }

        async def run(self, ctx: RunContext, api: HostApi) -> Results:
            async for result in space["run"](ctx, api):
                yield result

    nothing = {"items": [], "has_more": False}
    made = {"artifact_id": "a1", "artifact_type": "file", "source": "runner"}
    calls = {"events.page": lambda _: nothing, "artifacts.create": lambda _: made}
    async with pretend_host(Shown(), calls=calls, artifacts={"a1": b"a,b"}) as host:
        assert (await host.run("my parcel")).text == "done"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x = 1\n", "defines no agent"),
        ("from paddock import Agent\nagent = Agnet()\n", "line 2: NameError"),
        ("from paddock import Agent\ndef f(a): \n    'Do.'\nagent = Agent()\n", "the parameter 'a' has no type"),
        ("from paddock import Agent\na = Agent('1')\nb = Agent('2')\n", "two agents are called 'wrong'"),
        ("from paddock import Agent\na = Agent(1)\n", "instructions must be text, not 1"),
        ("from paddock import Agent\na = Agent(model=3)\n", "model must be text, not 3"),
        ("from paddock import Agent\na = Agent(config=[])\n", "config must be a dict, not []"),
        ("from paddock import Agent\na = Agent(tools=['f'])\n", "tools must be a list of functions, not ['f']"),
        (
            "from paddock import Agent\ndef pay(sum: int): \n    'Pay.'\na = Agent(approve='pay')\n",
            "approve must be a list of names, not 'pay'",
        ),
        (
            "from paddock import Agent\ndef pay(sum: int): \n    'Pay.'\na = Agent(approve=['payy'])\n",
            "approve names 'payy', which is no tool of this agent; it has: pay, calculate",
        ),
    ],
)
def test_a_mistake_in_the_file_is_one_sentence(text: str, says: str, tmp_path: Path, clean_env: dict[str, str]) -> None:  # noqa: F811
    (tmp_path / "wrong.py").write_text(text)
    done = subprocess.run(
        [PADDOCK, "run", "wrong.py", "hello"], cwd=tmp_path, env=clean_env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr
