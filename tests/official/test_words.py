"""What the official runners say of themselves, in every language the console speaks."""

from collections.abc import Iterator, Mapping

import pytest

from paddock_runners.acp import Acp
from paddock_runners.claude_code import ClaudeCode
from paddock_runners.codex import Codex
from paddock_runners.echo import EchoRunner
from paddock_runners.http import HttpRunner
from paddock_runners.local_agent import LocalAgent
from paddock_runners.router_worker import RouterWorker
from paddock_sdk import AgentRunner
from paddock_sdk.protocol.frames import PluginInfo
from paddock_sdk.protocol.manifest import AgentRunnerManifest

RUNNERS = (Acp, ClaudeCode, Codex, EchoRunner, HttpRunner, LocalAgent, RouterWorker)
NAMES = ("Claude Code", "Codex", "HTTP")
"""The same in every language."""


def texts(manifest: AgentRunnerManifest) -> Iterator[Mapping[str, str]]:
    yield manifest.label
    yield manifest.description or {}
    for field in manifest.config_schema:
        yield field.label
        if field.description is not None:
            yield field.description
        yield from (option["label"] for option in field.options or () if "label" in option)


@pytest.mark.parametrize("runner", RUNNERS, ids=lambda runner: runner.__name__)
def test_every_text_of_an_official_runner_is_there_in_english_and_chinese(runner: type[AgentRunner]) -> None:
    manifest = runner().manifest(PluginInfo(author="paddock", name="x"))
    said = list(texts(manifest))
    assert len(said) >= 2
    alone = [text for text in said if set(text) != {"en_US", "zh_Hans"} and text.get("en_US") not in NAMES]
    assert alone == []
    assert all(text["en_US"].isascii() for text in said)
    assert [text for text in said if text.get("zh_Hans", "智").isascii()] == []
