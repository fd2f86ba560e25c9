"""The console at an address that is no secure context: plain http under a name, as in a home network or a container."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from browser.people import DOT, Visitor
from walk.hosts import HostProcess

Visit = Callable[..., Visitor]
FIELD = """() => {
  const box = document.createElement('textarea');
  box.id = 'here';
  document.body.append(box);
  box.focus();
}"""


@pytest.fixture
def ann(visit: Visit, locked: tuple[HostProcess, str]) -> Visitor:
    """Signed in with a key, where the browser offers neither a clipboard nor `crypto.randomUUID`."""
    host, key = locked
    somebody = visit(f"http://console.test:{host.port}/")
    somebody.forgiving = True  # the browser reports the 401 and the headers it leaves out on plain http
    assert not somebody.page.evaluate("window.isSecureContext || 'randomUUID' in crypto || 'clipboard' in navigator")
    box = somebody.page.get_by_label("API key")
    box.fill(key)
    box.press("Enter")
    expect(somebody.box).to_be_visible()
    return somebody


def pasted(page: Page) -> str:
    """What is in the clipboard, by the only way a page without one has: a person pastes it."""
    page.evaluate(FIELD)
    page.keyboard.press("Control+V")
    text = page.locator("#here").input_value()
    page.evaluate("() => document.getElementById('here').remove()")
    return text


def broken(somebody: Visitor) -> list[str]:
    """What the page complained of, beside the refused key and a header that browsers leave out on plain http."""
    usual = ("401 (Unauthorized)", "Cross-Origin-Opener-Policy header has been ignored")
    return [said for said in somebody.complaints if not any(word in said for word in usual)]


def test_on_plain_http_somebody_signs_in_chats_attaches_copies_and_reloads(ann: Visitor) -> None:
    ann.page.locator("input[type=file]").set_input_files({"name": "dot.png", "mimeType": "image/png", "buffer": DOT})
    expect(ann.page.locator(".previews img")).to_have_count(1)
    turn = ann.ask("@echo **well** said\n\n```py\nprint(1)\n```")
    expect(turn.locator(".markdown").last).to_contain_text("well said")
    expect(turn.locator("img")).to_have_count(1)
    turn.locator(".code-head button").last.click()
    expect(ann.button("app.copied")).to_have_count(1)
    assert pasted(ann.page) == "print(1)"
    turn.get_by_role("button", name="Copy the answer").last.click()
    expect(ann.button("app.copied").last).to_be_visible()
    assert "**well** said" in pasted(ann.page)
    ann.page.reload()
    expect(ann.turns.first.locator(".markdown").last).to_contain_text("well said")
    assert broken(ann) == []


def test_on_plain_http_what_an_agent_asks_is_answered_and_a_conversation_is_taken_along(ann: Visitor) -> None:
    ann.write('@careful call calculate {"expression": "2 + 3"}')
    ann.page.get_by_role("button", name="Yes", exact=True).click()
    expect(ann.page.locator(".turn-footer")).to_have_count(2)
    ann.page.locator(".threads .menu > button").first.click()
    with ann.page.expect_download() as taken:
        ann.page.get_by_role("menuitem", name="Export as JSON").click()
    assert taken.value.path().stat().st_size > 100
    assert broken(ann) == []


def test_where_no_page_may_copy_the_text_is_shown_selected(ann: Visitor) -> None:
    ann.page.evaluate("document.execCommand = () => false")
    turn = ann.ask("@echo take this along")
    turn.get_by_role("button", name="Copy the answer").click()
    field = ann.page.get_by_role("dialog").get_by_role("textbox")
    expect(field).to_be_focused()
    assert "take this along" in ann.page.evaluate("getSelection().toString()")
    ann.page.keyboard.press("Control+C")
    ann.page.keyboard.press("Escape")
    assert "take this along" in pasted(ann.page)
    assert broken(ann) == []
