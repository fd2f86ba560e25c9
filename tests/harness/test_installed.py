"""What `make harnesses` and `make harnesses-acp` install is what is pinned, and it starts."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from harness.clis import CLAUDE_ACP, CODEX_ACP, INSTALLED, KIMI, NODE, REAL, ROOT
from needs import not_run

PROGRAMS = {
    "@moonshot-ai/kimi-code": [str(part) for part in KIMI],
    "opencode-ai": [str(NODE.with_name("opencode"))],
    "@google/gemini-cli": [str(NODE), str(INSTALLED / "acp/node_modules/@google/gemini-cli/bundle/gemini.js")],
    "@agentclientprotocol/claude-agent-acp": [str(NODE), str(CLAUDE_ACP)],
    "@agentclientprotocol/codex-acp": [str(NODE), str(CODEX_ACP)],
    "node": [str(NODE)],
}


def pinned(folder: Path) -> dict[str, str]:
    return json.loads((folder / "package.json").read_text())["dependencies"]


def installed(folder: Path, package: str) -> str:
    return json.loads((folder / "node_modules" / package / "package.json").read_text())["version"]


@pytest.mark.parametrize("folder", [INSTALLED, INSTALLED / "acp"], ids=["harnesses", "harnesses-acp"])
def test_every_harness_is_pinned_to_one_version_and_no_registry_is_named(folder: Path) -> None:
    versions = pinned(folder)
    locked = json.loads((folder / "package-lock.json").read_text())["packages"]
    assert {name: locked[f"node_modules/{name}"]["version"] for name in versions} == versions
    assert not [path for path, about in locked.items() if "resolved" in about]


def test_the_two_of_every_day_are_the_pinned_ones() -> None:
    REAL["claude-code"].path()
    assert {name: installed(INSTALLED, name) for name in pinned(INSTALLED)} == pinned(INSTALLED)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_make_installs_the_acp_harnesses_and_each_of_them_starts(tmp_path: Path) -> None:
    made = subprocess.run(["make", "harnesses-acp"], cwd=ROOT, capture_output=True, text=True, check=False)
    if made.returncode:
        not_run(f"`make harnesses-acp`, which ended with {(made.stderr or made.stdout)[-300:]!r}")
    folder = INSTALLED / "acp"
    assert {name: installed(folder, name) for name in pinned(folder)} == pinned(folder)
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    for name, program in PROGRAMS.items():
        said = subprocess.run(
            [*program, "--version"], env=env, cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert pinned(folder)[name] in said.stdout
