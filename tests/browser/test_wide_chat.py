"""The wide set: what is said in a conversation, at both sizes and in both languages."""

import uuid

import pytest
from playwright.sync_api import Locator, expect

from browser.long_threads import tell, turns_of
from browser.people import DOT, Visitor
from browser.wide import Reader, fits
from walk.hosts import HostProcess

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

HAND_IN = """(place, [kind, bytes]) => {
  const given = new DataTransfer();
  given.items.add(new File([Uint8Array.from(bytes)], `${kind}.png`, { type: 'image/png' }));
  const common = { bubbles: true, cancelable: true };
  const event = kind === 'paste' ? new ClipboardEvent(kind, { ...common, clipboardData: given })
    : new DragEvent(kind, { ...common, dataTransfer: given });
  place.dispatchEvent(event);
}"""


def test_words_come_in_pieces(reader: Reader) -> None:
    """Streaming Markdown with code, and an opinion of it that stays."""
    arrive, _ = reader
    ann = arrive(agent="slow")
    ann.write("count 5000 0.02")
    expect(ann.turns.first.locator(".markdown")).to_contain_text("3 ")
    expect(ann.turns.first.locator(".turn-footer")).to_have_count(0)
    ann.button("chat.stop").click()
    told = (
        "# Plan\n\n1. one\n2. two\n\n> said\n\n```python\nprint('"
        + "long " * 40
        + "')\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |"
    )
    turn = ann.ask(f"@echo {told}")
    expect(turn.locator(".code-block pre")).to_contain_text("print('long long")
    expect(turn.locator(".markdown li")).to_have_count(2)
    expect(turn.locator("td")).to_have_count(2)
    ann.button("chat.bad", turn).click()
    ann.page.reload()
    expect(ann.button("chat.bad").last).to_have_attribute("aria-pressed", "true")
    fits(ann)


def test_an_answer_is_stopped(reader: Reader) -> None:
    """And asked for again, and what was written meanwhile waits in line."""
    arrive, say = reader
    ann = arrive(agent="slow")
    ann.write("count 5000 0.02")
    expect(ann.turns.first.locator(".markdown")).to_contain_text("3 ")
    ann.write("@echo later")
    expect(ann.page.get_by_text(say["chat.queued"].split("{")[0])).to_be_visible()
    fits(ann)
    ann.button("chat.stop").click()
    expect(ann.turns.first.locator(".stopped")).to_contain_text(say["chat.cancelled_text"])
    expect(ann.turns.nth(1).locator(".markdown")).to_contain_text("later")
    ann.button("chat.retry", ann.turns.first).click()
    fits(ann)
    ann.button("chat.retry", ann.page.get_by_role("dialog")).click()
    expect(ann.turns).to_have_count(1)
    expect(ann.turns.first.locator(".markdown")).to_contain_text("3 ")
    ann.button("chat.stop").click()
    expect(ann.turns.first.locator(".stopped")).to_be_visible()
    fits(ann)


def test_a_handover_is_refused(reader: Reader) -> None:
    """And the next one is taken over, after a reload in between."""
    arrive, say = reader
    ann = arrive(agent="slow")
    ann.ask("handover echo")
    asked = ann.page.get_by_role("alertdialog", name=say["handover.title"].format(**{"from": "Slow", "to": "Echo"}))
    expect(asked).to_contain_text("not my trade")
    fits(ann)
    ann.button("handover.no", asked, **{"from": "Slow"}).click()
    expect(asked).to_have_count(0)
    ann.ask("handover echo")
    ann.page.reload()
    ann.button("handover.yes", asked).click()
    expect(ann.page.locator(".member.active")).to_contain_text("Echo")
    expect(ann.turns.nth(2).locator(".speaker")).to_contain_text("Echo")
    fits(ann)


def given(ann: Visitor, kind: str, place: Locator) -> None:
    before = ann.page.locator(".previews img").count()
    place.evaluate(HAND_IN, [kind, list(DOT)])
    expect(ann.page.locator(".previews img")).to_have_count(before + 1)


def test_pictures_come_by_paste_and_drop(reader: Reader) -> None:
    arrive, say = reader
    ann = arrive(agent="echo")
    given(ann, "paste", ann.box)
    given(ann, "drop", ann.page.locator(".composer"))
    expect(ann.page.locator(".previews img").first).to_have_js_property("naturalWidth", 8)
    expect(ann.page.get_by_text(say["chat.uploading"])).to_have_count(0)
    fits(ann)
    ann.button("chat.detach", name="drop.png").click()
    expect(ann.page.locator(".previews img")).to_have_count(1)
    turn = ann.ask("what is this?")
    expect(turn.locator(".bubble img")).to_have_js_property("naturalWidth", 8)
    ann.page.reload()
    expect(ann.turns.first.locator(".bubble img")).to_have_js_property("naturalWidth", 8)
    fits(ann)


def test_earlier_days_come_above(reader: Reader) -> None:
    arrive, say = reader
    ann = arrive()
    ann.forgiving = True  # the stream of this conversation is cut off, and the browser says so
    ann.page.goto(tell(ann, [turns_of(10, 0, 1), turns_of(10, 10, 2), turns_of(10, 20, 3)]))
    expect(ann.page.get_by_text("question 29", exact=True)).to_be_in_viewport()
    box, oldest = ann.page.locator(".scroller"), ann.page.get_by_text("question 0", exact=True)
    for day in (2, 3):
        box.evaluate("box => { box.scrollTop = 0 }")
        expect(ann.page.locator(f"article.turn[aria-setsize='{day * 10}']").first).to_be_attached()
    box.evaluate("box => { box.scrollTop = 0 }")
    expect(oldest).to_be_in_viewport()
    expect(ann.page.get_by_role("heading", level=2).first).to_contain_text("2026")
    expect(ann.button("chat.earlier")).to_have_count(0)
    fits(ann)
    ann.button("chat.to_bottom").click()
    expect(ann.page.get_by_text("question 29", exact=True)).to_be_in_viewport()
    assert say["chat.to_bottom"]


def test_a_hit_is_opened(reader: Reader, host: HostProcess) -> None:
    """A conversation found by its words opens at the message that has them."""
    arrive, say = reader
    thread, rare = str(uuid.uuid4()), uuid.uuid4().hex
    for text in (f"The numbat 袋食蚁兽 {rare} sleeps", *("and so on " * 60 for _ in range(6))):
        host.finished(host.post(text, thread=thread, agent="echo").json()["taskId"])
    ann = arrive()
    if ann.narrow:
        ann.button("app.menu").click()
    ann.page.get_by_label(say["threads.search"]).fill(f"袋食 {rare}")
    ann.page.locator(".threads li:has(mark) > a").click()
    expect(ann.page.locator("article.turn.sought .bubble")).to_be_in_viewport()
    expect(ann.page.locator("article.turn.sought")).to_contain_text("袋食蚁兽")
    fits(ann)
