"""What the tutorial and the table of permissions say is so."""

import re
import subprocess
from pathlib import Path

import pytest

from cli.conftest import clean_env  # noqa: F401 - a fixture
from paddock.rules.permissions import FILLS, GIVES, OPENS
from walk.hosts import PADDOCK

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
PIECE = re.compile(r"```(python|text)\n(.*?)```|^    (paddock [^\n]*)$", re.DOTALL | re.MULTILINE)


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
            typed = f"{PADDOCK.parent}/{command}"
            done = subprocess.run(
                ["bash", "-c", typed], cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=60
            )
            shown = [line for line in done.stderr.splitlines(keepends=True) if line.startswith("The run failed")]
            said = done.stdout or "".join(shown)
    assert steps == 7


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


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x = 1\n", "defines no agent"),
        ("from paddock import Agent\nagent = Agnet()\n", "line 2: NameError"),
        ("from paddock import Agent\ndef f(a): \n    'Do.'\nagent = Agent()\n", "the parameter 'a' has no type"),
        ("from paddock import Agent\na = Agent('1')\nb = Agent('2')\n", "two agents are called 'wrong'"),
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
