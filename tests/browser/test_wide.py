"""The wide set: the stories of chat and run at both sizes, in both languages; and the figures of long use."""

import re
from collections.abc import Callable, Mapping

import httpx
import pytest
from playwright.sync_api import Locator, expect

from browser.long_threads import scroll, tell, turns_of
from browser.people import DOT, Visitor
from browser.wide import Reader, fits
from paddock.http_api.admin.console import ASSETS
from walk.hosts import HostProcess

pytestmark = [pytest.mark.long, pytest.mark.timeout(1_500)]
Visit = Callable[..., Visitor]


def test_the_chat_from_the_first_visit_on(reader: Reader) -> None:
    arrive, say = reader
    ann = arrive()
    fits(ann)
    ann.page.get_by_role("button", name=say["chat.try.1"], exact=True).click()
    expect(ann.turns.first.locator(".turn-footer")).to_have_count(1)
    box = ann.page.get_by_label(say["chat.write"], exact=True)
    box.fill("@ec")
    expect(ann.page.get_by_role("option").first).to_contain_text("@echo")
    fits(ann)
    box.press("Enter")
    box.press_sequentially("**bold** and `code`")
    box.press("Enter")
    expect(ann.turns.nth(1).locator("strong", has_text="bold")).to_be_visible()
    ann.page.get_by_role("button", name=say["agents.invite"]).click()
    ann.page.get_by_role("menuitem", name="Slow").click()
    expect(ann.page.locator(".member", has_text="Slow")).to_be_visible()
    fits(ann)
    ann.page.get_by_role("button", name=say["chat.good"]).last.click()
    ann.turns.first.get_by_role("button", name=say["chat.edit"]).click()
    ann.page.get_by_label(say["chat.edit_text"]).fill("@echo instead")
    fits(ann)
    ann.page.get_by_role("button", name=say["chat.edit_send"]).click()
    expect(ann.turns).to_have_count(1)
    expect(ann.turns.first.locator(".markdown")).to_contain_text("instead")
    if ann.page.viewport_size and ann.page.viewport_size["width"] < 600:
        ann.page.get_by_role("button", name=say["app.menu"]).click()
    search = ann.page.get_by_label(say["threads.search"])
    search.fill("instea")
    expect(ann.page.locator(".threads li mark").first).to_have_text("instea")
    fits(ann)
    search.fill("nothing of this")
    expect(ann.page.get_by_text(say["threads.none_found"].split("{")[0])).to_be_visible()
    fits(ann)


def test_what_people_do_with_answers_agents_and_conversations(
    reader: Reader,
) -> None:
    arrive, say = reader
    ann = arrive(agent="echo")
    box = ann.page.get_by_label(say["chat.write"], exact=True)
    ann.page.locator("input[type=file]").set_input_files({"name": "dot.png", "mimeType": "image/png", "buffer": DOT})
    expect(ann.page.locator(".previews img")).to_be_visible()
    fits(ann)
    box.fill("what is this?")
    box.press("Enter")
    expect(ann.turns.first.locator(".turn-footer")).to_have_count(1)
    ann.page.get_by_role("button", name=say["chat.regenerate"]).click()
    expect(ann.turns.first.locator(".turn-footer")).to_have_count(1)
    ann.page.reload()
    expect(ann.turns).to_have_count(1)
    expect(ann.turns.first.locator(".bubble img")).to_have_js_property("naturalWidth", 8)
    ann.page.get_by_role("button", name=say["agents.invite"]).click()
    ann.page.get_by_role("menuitem", name="Slow").click()
    ann.page.locator(".member", has_text="Slow").get_by_role("button", name="Slow", exact=True).click()
    expect(ann.page.locator(".member.active")).to_have_text("Slow")
    ann.page.get_by_role("button", name=say["agents.remove"].format(agent="Slow")).click()
    expect(ann.page.locator(".member", has_text="Slow")).to_have_count(0)
    fits(ann)
    keep_house(ann, say)


def keep_house(ann: Visitor, say: Mapping[str, str]) -> None:
    """Its name, a copy of it, the archive, the end."""
    mine, named = ann.page.locator(".threads li.current"), ann.page.locator(".threads li", has_text="Oolong")
    actions = re.compile(re.escape(say["threads.menu"]).replace(re.escape("{title}"), ".*"))

    def choose(action: str, entry: Locator) -> None:
        menu = ann.page.get_by_role("button", name=say["app.menu"])
        if menu.is_visible() and not entry.is_visible():
            menu.click()
        entry.get_by_role("button", name=actions).click()
        ann.page.get_by_role("menuitem", name=say[action], exact=True).click()

    choose("threads.rename", mine)
    ann.page.get_by_label(say["threads.name"]).fill("Oolong")
    fits(ann)
    ann.page.get_by_role("button", name=say["app.save"]).click()
    expect(named).to_have_count(1)
    with ann.page.expect_download() as taken:
        choose("threads.export_md", named)
    assert taken.value.suggested_filename == "Oolong.md"
    choose("threads.archive", named)
    expect(named).to_have_count(0)
    ann.page.get_by_role("button", name=say["threads.archived"], exact=True).click()
    expect(named).to_have_count(1)
    choose("threads.delete", named)
    fits(ann)
    ann.page.get_by_role("dialog").get_by_role("button", name=say["app.delete"]).click()
    expect(named).to_have_count(0)


def test_what_goes_wrong_and_what_is_asked(reader: Reader) -> None:
    arrive, say = reader
    ann = arrive(agent="slow")
    box = ann.page.get_by_label(say["chat.write"], exact=True)
    box.fill("count 5000 0.02")
    box.press("Enter")
    expect(ann.turns.first.locator(".markdown")).to_contain_text("3 ")
    fits(ann)
    ann.page.get_by_role("button", name=say["chat.stop"], exact=True).click()
    expect(ann.turns.first.locator(".stopped")).to_contain_text(say["chat.cancelled_text"])
    box.fill("crash")
    box.press("Enter")
    expect(ann.turns.nth(1).locator(".failed")).to_contain_text(say["chat.failed_middle"])
    fits(ann)
    box.fill("handover echo")
    box.press("Enter")
    asked = ann.page.get_by_role("alertdialog")
    fits(ann)
    asked.get_by_role("button", name=say["handover.yes"]).click()
    expect(ann.turns).to_have_count(4)
    bob = arrive(agent="asker")
    box = bob.page.get_by_label(say["chat.write"], exact=True)
    for text in ("card", "ask"):
        box.fill(text)
        box.press("Enter")
        expect(bob.page.locator(".card" if text == "card" else ".question").first).to_be_visible()
        fits(bob)


def test_the_story_of_a_run_and_every_other_page(reader: Reader, host: HostProcess) -> None:
    arrive, say = reader
    thread = "5f0c2b1e-6f0e-4a53-9d6e-2d1f6a7b8c9d"
    for text in ('call calculate {"expression": "2 + 3"}', "hello"):
        host.finished(host.post(text, thread=thread, agent="helper").json()["taskId"])
    ann = arrive(f"{host.url}/#/t/{thread}")
    ann.turns.first.get_by_role("link", name=say["chat.run"]).click()
    expect(ann.page.get_by_role("heading", name=say["run.timeline"])).to_be_visible()
    ann.page.locator(".timeline summary").first.click()
    fits(ann)
    ann.page.get_by_role("button", name=say["run.raw_show"]).click()
    ann.page.locator("label", has_text=say["run.compare"]).locator("select").select_option(index=1)
    expect(ann.page.locator(".compare")).to_be_visible()
    fits(ann)
    pages = ("live", "approvals", "usage", "audit", "keys", "knowledge", "automations", "calendar", "deliveries")
    for place in ("agents", "agents/helper", "agents/+", *(f"operate/{one}" for one in pages)):
        ann.page.goto(f"{host.url}/#/{place}")
        expect(ann.page.locator(".tile, .panel").first).to_be_visible()
        expect(ann.page.get_by_text(say["app.loading"])).to_have_count(0)
        fits(ann)


def heap(ann: Visitor) -> float:
    """What the page holds after it has tidied up, in megabytes."""
    session = ann.context.new_cdp_session(ann.page)
    session.send("HeapProfiler.enable")
    session.send("HeapProfiler.collectGarbage")
    used = session.send("Runtime.getHeapUsage")["usedSize"]
    session.detach()
    return used / 1e6


def say_by_another_client(host: HostProcess, thread: str, number: int) -> None:
    """One turn, from the first word to the last."""
    said = {"id": f"m-{number}", "role": "user", "content": f"turn {number} " + "word " * 20}
    body = {"threadId": thread, "runId": f"r-{number}", "protocolVersion": "1.0", "messages": [said]}
    answer = httpx.post(f"{host.url}/api/v1/agent/ag-ui/echo", json=body, timeout=60)
    assert "RUN_FINISHED" in answer.text


def test_memory_stays_flat_over_a_thousand_streamed_turns(visit: Visit, host: HostProcess, record_property) -> None:
    ann = visit(agent="echo")
    ann.ask("first")
    thread = ann.page.url.rpartition("/")[2]
    figures: list[float] = []
    for number in range(1, 1_001):
        say_by_another_client(host, thread, number)
        if number in (100, 1_000):
            expect(ann.page.locator(f"article.turn[aria-setsize='{number + 1}']").last).to_be_visible()
            figures.append(heap(ann))
    nodes = ann.page.evaluate("document.querySelectorAll('*').length")
    print(f"after 100 turns {figures[0]:.1f} MB, after 1,000 {figures[1]:.1f} MB, {nodes} elements")
    record_property("heap", figures)
    assert nodes < 2_500
    assert figures[1] - figures[0] < 15


def test_figures_of_speed(visit: Visit) -> None:
    ann = visit()
    expect(ann.page.locator(".hello")).to_be_visible()
    paints: list[float] = []
    for _ in range(7):
        ann.page.reload()
        expect(ann.page.locator(".hello")).to_be_visible()
        paints.append(ann.first_paint())
    ann.forgiving = True
    ann.page.goto(tell(ann, [turns_of(5_000)]))
    expect(ann.page.get_by_text("question 4999", exact=True)).to_be_in_viewport()
    up, down = scroll(ann.page, 300, -700), scroll(ann.page, 300, 700)
    size = sum(path.stat().st_size for path in ASSETS.rglob("*") if path.is_file()) / 1e3
    print(f"first paint [ms]: {sorted(round(one) for one in paints)}; {size:.0f} kB in all")
    print(f"scrolling up {up}, down {down}")
    assert sorted(paints)[3] < 3_000
    assert max(up["median"], down["median"]) < 100
    assert up["empty"] + down["empty"] == 0
