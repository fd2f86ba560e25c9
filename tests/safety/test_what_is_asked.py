"""A person who says yes has seen what is done; what a harness would obey without asking is written on nobody's yes."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from paddock_runners.acp.opening import Opening
from paddock_runners.acp.presets import PRESETS
from paddock_runners.acp.wire import AcpWire
from paddock_runners.codex.approvals import for_patch
from paddock_runners.harness.config import Config
from paddock_runners.harness.heard import Permission
from paddock_runners.harness.permissions import Decided, Policy, Waiting
from paddock_runners.local_agent.approvals import MAX_SHOWN, shown
from paddock_runners.toolkit.consent import HIDDEN, to_be_seen
from paddock_runners.toolkit.replies import Called

pytestmark = pytest.mark.anyio
TRUSTING = Config.read({"allow": ["*"], "on_permission": "allow"}, program="x")
SETTINGS = [
    ".gemini/settings.json",
    "below/.gemini/commands/x.toml",
    ".opencode/plugin/x.js",
    "opencode.json",
    "OpenCode.JSONC",
    "../home/.config/opencode/opencode.json",
    ".kimi-code/mcp.json",
    ".claude/settings.json",
    ".CODEX/config.toml",
    "a/../.git/hooks/pre-commit",
    ".mcp.json",
    "by-a-link/hooks.json",
]
"""What some harness obeys; `by-a-link` leads to one of them."""
PLAIN = ["src/main.py", "gemini/settings.json", "docs/opencode.json.md", ".github/workflows/x.yml", ".env"]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    work = tmp_path / ".codex" / "work"  # what lies above the directory is not the harness's doing
    (work / ".codex").mkdir(parents=True)
    (work / "by-a-link").symlink_to(work / ".codex")
    return work


class SilentProcess:
    """A harness that says nothing by itself."""

    async def lines(self) -> AsyncIterator[bytes]:
        await asyncio.Event().wait()
        yield b""


def asked_by_acp(place: Path, call: dict[str, Any], preset: str = "opencode") -> Permission:
    process: Any = SilentProcess()
    wire = AcpWire(process, Opening(str(place), (), obeys=PRESETS[preset].obeys))
    heard = wire.asked(1, "session/request_permission", {"toolCall": {"toolCallId": "1", **call}, "options": []})
    (permission,) = [one for one in heard or () if isinstance(one, Permission)]
    return permission


def ways_to_say(path: str, place: Path) -> list[dict[str, Any]]:
    """How agents say that they would change a file."""
    absolute = str(place / path)
    diff = {"type": "diff", "path": absolute, "oldText": None, "newText": "x"}
    return [
        {"kind": "edit", "title": "write", "rawInput": {"file_path": path, "content": "x"}},
        {"kind": "edit", "title": "edit", "rawInput": {"filePath": absolute, "newString": "x"}},
        {"kind": "edit", "title": "write", "locations": [{"path": absolute}], "rawInput": {"content": "x"}},
        {"kind": "move", "title": "move", "locations": [{"path": absolute}], "rawInput": {"content": "x"}},
        {"title": "WriteFile", "content": [diff]},
    ]


@pytest.mark.parametrize("path", SETTINGS)
async def test_no_harness_writes_settings_that_it_would_obey_when_it_asks(place: Path, path: str) -> None:
    for call in ways_to_say(path, place):
        permission = asked_by_acp(place, call)
        assert Policy(TRUSTING, [Waiting.of(permission)], can_ask=True).judge(permission)[0] == "refuse", call
    for written in (path, str(place / path)):
        patch = {"1": {"changes": [{"path": written, "kind": {"type": "add"}}]}}
        permission = for_patch(1, {"itemId": "1"}, patch, str(place))
        assert Policy(TRUSTING, [], can_ask=True).judge(permission)[0] == "refuse"


@pytest.mark.parametrize("path", PLAIN)
async def test_other_files_are_written_as_allowed(place: Path, path: str) -> None:
    for call in ways_to_say(path, place):
        assert Policy(TRUSTING, [], can_ask=True).judge(asked_by_acp(place, call))[0] == "allow", call


async def test_gemini_is_kept_from_the_file_of_its_variables(place: Path) -> None:
    for call in ways_to_say(".env", place):
        assert asked_by_acp(place, call, "gemini").obeyed


async def test_reading_them_is_allowed(place: Path) -> None:
    call = {"kind": "read", "title": "read", "rawInput": {"file_path": ".gemini/settings.json"}}
    assert not asked_by_acp(place, call).obeyed


async def test_a_name_that_is_no_path_is_judged(place: Path) -> None:
    for name in ("", "\0", "x" * 100_000, "../" * 5000, "\ud800"):
        asked_by_acp(place, {"kind": "edit", "title": "write", "rawInput": {"file_path": name}})


def test_hidden_characters_are_shown_to_who_is_asked() -> None:
    command = "echo \u202etxt.cod\u2066 \u200brm\u00ad -rf ~\U000e0041"
    waiting = Waiting.of(Permission("k", "1", "Bash", {"command": command}))
    assert HIDDEN.search(waiting.shown()) is None
    assert "\\u{202e}txt.cod\\u{2066} \\u{200b}rm\\u{ad} -rf ~\\u{e0041}" in waiting.shown()
    assert command in Decided(approved=(waiting,)).told("yes"), "its model knows the call as it is"
    assert to_be_seen("plain\nالعربية 你好 \t") == "plain\nالعربية 你好 \t"


def test_a_local_agent_shows_them_too_and_as_much_as_a_harness() -> None:
    arguments = json.dumps({"note": "x" * 1000 + "\u202e", "to": "somebody else"}, ensure_ascii=False)
    text = shown(Called("1", "send", arguments))
    assert len(arguments) < MAX_SHOWN
    assert text.endswith('\\u{202e}", "to": "somebody else"}')
