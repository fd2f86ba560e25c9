"""What the guide to harnesses says is so."""

import re
from pathlib import Path

import yaml

from harness.fixtures import KINDS
from paddock.host.agents.file import in_force, read_agents
from paddock.runners.installed.plugins import load_plugin
from paddock_runners.harness.permissions import KEY
from paddock_sdk.protocol.frames import PluginInfo

TOP = Path(__file__).parents[2]
GUIDE = (TOP / "docs" / "guides" / "harnesses.md").read_text()
RUNNERS = TOP / "src" / "paddock_runners"


def test_the_agents_in_the_guide_can_be_used_as_they_are_written() -> None:
    for shown in re.findall(r"```yaml\n(.*?)```", GUIDE, re.DOTALL):
        in_force(read_agents(shown, "harnesses.md"), 100)
        for agent in yaml.safe_load(shown)["agents"].values():
            runner = KINDS[agent["runner"].split("/")[1]].runner()
            assert runner.settings({**agent["config"], "api_key": "k"}).on_permission == "ask"


def test_every_way_a_turn_can_fail_is_in_the_guide() -> None:
    sources = [
        path.read_text()
        for name in ("harness", "claude_code", "codex", "acp")
        for path in (RUNNERS / name).glob("*.py")
    ]
    said = {code for text in sources for code in re.findall(r'"(harness\.[a-z_]+)"', text)}
    assert said - set(re.findall(r"`(harness\.[a-z_]+)`", GUIDE)) == {KEY}


def test_manifests_ask_for_what_their_plugin_files_allow_and_every_setting_is_in_the_readme() -> None:
    for name, folder in {"claude-code": "claude_code", "codex": "codex", "acp": "acp"}.items():
        plugin = load_plugin(RUNNERS / folder)
        manifest = KINDS[name].runner().manifest(PluginInfo(author="paddock", name=name))
        assert manifest.permissions == plugin.ceiling
        assert plugin.runs_per_process == 1
        readme = (RUNNERS / folder / "README.md").read_text()
        assert not [field.name for field in manifest.config_schema if f"`{field.name}`" not in readme]
