"""The chat with agents as people have them, before a scripted model: the local agent, and Claude Code itself."""

import json
from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, expect

from browser.people import Visitor
from harness.clis import REAL
from harness.stages import a_house
from model_server import ModelServer, Says
from walk.hosts import HostProcess

Visit = Callable[..., Visitor]
Call = tuple[str, str]


def chat(visit: Visit, host: HostProcess, model: ModelServer, calculate: Call) -> None:
    """Words in pieces, a tool of the host's, a stop in the middle, a new answer, and what it remembers."""
    ann = visit(f"{host.url}/#/?agent=free")
    model.says(Says("I will ask. ", calls=(calculate,)), Says("It is **five**."))
    turn = ann.ask("add two and three")
    expect(turn.locator("strong", has_text="five")).to_be_visible()
    expect(turn.locator(".tool", has_text="calculate").locator(".tool-result")).to_contain_text("5")
    model.says(Says("once upon a time " * 400, pause=0.05))
    ann.write("tell a long story")
    expect(ann.turns.nth(1).locator(".markdown")).to_contain_text("once upon a time once")
    ann.page.get_by_role("button", name="Stop").click()
    expect(ann.turns.nth(1).locator(".stopped")).to_be_visible()
    model.says(Says("A short one."))
    ann.turns.nth(1).get_by_role("button", name="Ask again").click()
    expect(ann.turns.nth(1).locator(".markdown")).to_have_text("A short one.")
    expect(ann.turns).to_have_count(2)
    assert "It is **five**." in json.dumps(model.last)
    ann.page.reload()
    expect(ann.turns.nth(1).locator(".markdown")).to_have_text("A short one.")
    ann.turns.first.get_by_role("link", name="How this came about").click()
    ann.page.get_by_role("button", name="Everything").click()
    expect(ann.page.locator(".timeline > li", has_text="calculate").first).to_be_visible()


def test_a_chat_with_the_local_agent(visit: Visit, host: HostProcess, model: ModelServer) -> None:
    chat(visit, host, model, ("calculate", json.dumps({"expression": "2 + 3"})))


@pytest.mark.long
def test_a_chat_with_claude_code(visit: Visit, browser: Browser) -> None:
    assert browser.is_connected()
    with a_house(REAL["claude-code"]) as (real, host, model):
        chat(visit, host, model, real.host_tool("calculate", {"expression": "2 + 3"}))
