"""The chat, as people use it."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Route, expect

import loopback
from browser.axe import serious
from browser.long_threads import START, answer, scroll, tell, turns_of
from browser.people import DOT, Visitor
from browser.wide import fits
from walk.hosts import HostProcess

Visit = Callable[..., Visitor]
COUNTED = " ".join(str(number) for number in range(40))


def test_a_first_visitor_gets_an_answer_with_one_click(visit: Visit) -> None:
    ann = visit()
    ann.page.get_by_role("button", name="hello", exact=True).click()
    expect(ann.turns.first.locator(".markdown")).to_contain_text("Hello. I am the demo model")
    expect(ann.page.locator(".threads li").first).to_contain_text("hello")


def test_a_conversation_that_began_elsewhere_is_called_by_its_first_words(visit: Visit, host: HostProcess) -> None:
    assert host.post("plan my trip to Bergen", agent="echo").status_code == 202
    ann = visit()
    ann.page.locator(".threads li a", has_text="plan my trip to Bergen").click()
    expect(ann.page.get_by_role("heading", name="plan my trip to Bergen")).to_be_visible()


def test_an_answer_is_markdown_and_tools_are_shown_with_what_they_got(visit: Visit) -> None:
    ann = visit()
    tool = ann.ask('call calculate {"expression": "2 + 3"}').locator(".tool")
    expect(tool.locator("summary")).to_contain_text("calculate")
    tool.locator("summary").click()
    turn = ann.ask("@echo **bold**\n\n- one\n- two\n\n```python\nprint(1)\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |")
    expect(turn.locator("strong", has_text="bold")).to_be_visible()
    expect(turn.locator(".markdown li")).to_have_count(2)
    expect(turn.locator(".code-block pre")).to_have_text("print(1)")
    expect(turn.locator("td")).to_have_count(2)
    expect(tool).to_contain_text('"expression": "2 + 3"')  # still unfolded


def test_a_reload_in_the_middle_loses_and_doubles_no_word(visit: Visit) -> None:
    ann = visit(agent="slow")
    ann.write("count 40 0.05")
    expect(ann.turns.first.locator(".markdown")).to_contain_text("5 ")
    ann.page.reload()
    expect(ann.turns.first.locator(".turn-footer")).to_have_count(1)
    expect(ann.turns).to_have_count(1)
    assert ann.turns.first.locator(".markdown").inner_text().split() == COUNTED.split()
    ann.page.reload()
    expect(ann.turns.first.locator(".markdown")).to_contain_text("39")
    assert ann.turns.first.locator(".markdown").inner_text().split() == COUNTED.split()


def test_stop_stops_and_says_so_also_after_a_reload_and_it_can_be_asked_again(visit: Visit) -> None:
    ann = visit(agent="slow")
    ann.write("count 5000 0.02")
    expect(ann.turns.first.locator(".markdown")).to_contain_text("3 ")
    ann.page.get_by_role("button", name="Stop").click()
    expect(ann.turns.first.locator(".stopped")).to_contain_text("This answer is unfinished: it was stopped")
    ann.page.reload()
    expect(ann.turns.first.locator(".stopped")).to_contain_text("This answer is unfinished: it was stopped")
    ann.page.get_by_role("button", name="Ask again").click()
    expect(ann.turns.first.locator(".markdown")).to_contain_text("3 ")
    expect(ann.turns).to_have_count(1)
    ann.page.get_by_role("button", name="Stop").click()
    expect(ann.turns.first.locator(".stopped")).to_be_visible()


def test_a_failed_run_is_shown_as_what_it_is(visit: Visit) -> None:
    ann = visit(agent="slow")
    turn = ann.ask("crash")
    expect(turn.locator(".failed")).to_contain_text("This answer is unfinished: it failed in the middle")
    expect(turn.locator(".failed")).to_contain_text("Its program ended in the middle. Ask again")
    ann.page.reload()
    expect(ann.turns.first.locator(".failed")).to_contain_text("This answer is unfinished: it failed in the middle")
    expect(ann.turns.first.get_by_role("button", name="Ask again")).to_be_visible()


def test_several_agents_are_mentioned_invited_switched_to_and_removed(visit: Visit) -> None:
    ann = visit()
    ann.ask("@echo hi")
    box = ann.page.get_by_label("Message", exact=True)
    box.fill("@he")
    expect(ann.page.get_by_role("option")).to_contain_text("@helper")
    box.press("Tab")
    expect(box).to_have_value("@helper ")
    box.fill("")
    ann.page.get_by_role("button", name="Invite an agent").click()
    ann.page.get_by_role("menuitem", name="Slow").click()
    slow = ann.page.locator(".member", has_text="Slow")
    slow.get_by_role("button", name="Slow", exact=True).click()
    expect(ann.page.locator(".member.active")).to_have_text("Slow")
    expect(ann.ask("who?").locator(".speaker")).to_contain_text("Slow")
    ann.page.get_by_role("button", name="Remove Slow").click()
    expect(ann.page.locator(".member", has_text="Slow")).to_have_count(0)


def test_a_first_message_goes_to_whom_it_calls_whoever_was_chosen_to_answer(visit: Visit) -> None:
    ann = visit(agent="slow")
    expect(ann.ask("@echo hi").locator(".speaker")).to_contain_text("Echo")
    expect(ann.page.locator(".member.active")).to_contain_text("Echo")


def test_whom_a_first_message_calls_is_known_before_it_is_sent_however_late_the_list_of_agents(visit: Visit) -> None:
    ann = visit(agent="slow")
    held: list[Route] = []
    here = False

    def late(route: Route) -> None:
        route.continue_() if here else held.append(route)

    ann.page.route("**/api/v1/agents", late)
    ann.page.reload()
    ann.write("@echo hi")
    expect(ann.page.locator(".bubble.pending, article.turn[data-turn]")).to_have_count(1)
    here = True
    for route in held:
        route.continue_()
    expect(ann.turns.first.locator(".turn-footer")).to_have_count(1)
    expect(ann.turns.first.locator(".speaker")).to_contain_text("Echo")


def test_a_handover_is_asked_about_and_taken_over(visit: Visit) -> None:
    ann = visit(agent="slow")
    ann.ask("handover echo")
    asked = ann.page.get_by_role("alertdialog")
    expect(asked).to_contain_text("Slow wants to hand over to Echo")
    asked.get_by_role("button", name="Hand over").click()
    expect(asked).to_have_count(0)
    expect(ann.page.locator(".member.active")).to_have_text(re.compile("Echo"))
    expect(ann.turns).to_have_count(2)
    expect(ann.turns.nth(1).locator(".speaker")).to_contain_text("Echo")


def test_a_message_is_edited_and_answered_anew(visit: Visit) -> None:
    ann = visit()
    ann.ask("@echo first")
    ann.ask("@echo second")
    ann.turns.first.hover()
    ann.turns.first.get_by_role("button", name="Edit").click()
    ann.page.get_by_label("Edit your message").fill("@echo instead")
    ann.page.get_by_role("button", name="Ask this instead").click()
    expect(ann.turns).to_have_count(1)
    expect(ann.turns.first.locator(".markdown")).to_contain_text("instead")
    ann.page.get_by_role("button", name="New answer").click()
    expect(ann.turns.first.locator(".turn-footer")).to_have_count(1)
    expect(ann.turns).to_have_count(1)


def test_opinions_stay(visit: Visit) -> None:
    ann = visit()
    ann.ask("@echo hi")
    ann.page.get_by_role("button", name="Good answer").click()
    expect(ann.page.get_by_role("button", name="Good answer")).to_have_attribute("aria-pressed", "true")
    ann.page.reload()
    expect(ann.page.get_by_role("button", name="Good answer")).to_have_attribute("aria-pressed", "true")


def test_a_conversation_is_renamed_searched_exported_archived_and_deleted(visit: Visit) -> None:
    ann = visit()
    ann.ask("@echo about tea")
    entry = ann.page.locator(".threads li.current")

    def choose(action: str) -> None:
        entry.get_by_role("button", name=re.compile("Actions for")).click()
        ann.page.get_by_role("menuitem", name=action).click()

    choose("Rename")
    ann.page.get_by_label("Name of the conversation").fill("Oolong")
    ann.page.get_by_role("button", name="Save").click()
    expect(entry).to_contain_text("Oolong")
    ann.page.get_by_label("Search conversations").fill("oolo")
    expect(ann.page.locator(".threads li")).to_have_count(1)
    with ann.page.expect_download() as taken:
        choose("Export as Markdown")
    assert taken.value.suggested_filename == "Oolong.md"
    assert "about tea" in taken.value.path().read_text()
    choose("Archive")
    expect(ann.page.locator(".threads li")).to_have_count(0)
    ann.page.get_by_role("button", name="Archived").click()
    choose("Delete")
    ann.page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(ann.page.locator(".threads li")).to_have_count(0)
    ann.page.get_by_role("button", name="Current").click()  # nobody is left among the archived ones
    expect(ann.page.get_by_role("button", name="Current")).to_have_count(0)


def test_a_conversation_in_which_somebody_speaks_is_not_deleted_and_stays_in_sight(visit: Visit) -> None:
    ann = visit(agent="slow")
    ann.forgiving = True  # a refusal is an error of the network for the browser
    ann.write("count 5000 0.02")
    expect(ann.turns.first.locator(".markdown")).to_contain_text("3 ")
    for refused in (True, False):
        ann.page.locator(".threads li.current").get_by_role("button", name=re.compile("Actions for")).click()
        ann.page.get_by_role("menuitem", name="Delete").click()
        ann.page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        if refused:
            expect(ann.page.locator(".threads").get_by_role("alert")).to_contain_text("Stop it, then delete")
            ann.page.get_by_role("button", name="Stop").click()
            expect(ann.turns.first.locator(".stopped")).to_be_visible()
    expect(ann.page.locator(".hello")).to_be_visible()


def test_a_conversation_is_found_by_what_was_said_in_it_in_english_and_chinese(visit: Visit) -> None:
    ann = visit(agent="echo")
    ann.ask("The kangaroo jumped over the fence")
    ann.begin_anew()
    ann.ask("@echo 请帮我写一份预算表")
    box, found = ann.page.get_by_label("Search conversations"), ann.page.locator(".threads li")
    box.fill("fence kanga")
    expect(found).to_have_count(1)
    expect(found.locator(".thread-found mark")).to_have_text(["kanga", "fence"])
    box.fill("预算")
    expect(found.locator(".thread-found mark")).to_have_text(["预算"])
    box.fill("kangaroo wombat")
    ann.sees("No conversation has “kangaroo wombat” in its title or in what was said")
    assert not serious(ann)
    box.fill("kangaroo")
    expect(found).to_have_count(1)
    box.press("ArrowDown")
    ann.page.keyboard.press("Enter")
    expect(ann.page.locator("article.turn.sought .bubble")).to_contain_text("jumped over the fence")
    box.press("Escape")
    expect(box).to_have_value("")
    expect(found.nth(1)).to_be_visible()


def test_more_of_what_was_found_comes_as_somebody_scrolls(visit: Visit, host: HostProcess) -> None:
    with host.client() as client:
        for number in range(70):
            client.post("/api/v1/agent/sessions", json={"title": f"Wallaby {number}"})
    ann = visit()
    found = ann.page.locator(".threads li > a")
    ann.page.get_by_label("Search conversations").fill("wallaby")
    expect(found.first).to_contain_text("Wallaby 69")
    for known, more in ((30, 60), (60, 70)):
        expect(found).to_have_count(known)
        ann.page.locator(".threads ul").evaluate("(list) => list.scrollTo(0, list.scrollHeight)")
        expect(found).to_have_count(more)
    expect(found.last).to_contain_text("Wallaby 0")


def test_two_browsers_on_one_thread_see_the_same(visit: Visit, host: HostProcess) -> None:
    ann = visit()
    ann.ask("@echo one")
    bob = visit(ann.page.url)
    expect(bob.turns.first.locator(".markdown")).to_contain_text("one")
    ann.ask("@echo two")
    expect(bob.turns.nth(1).locator(".markdown")).to_contain_text("two")
    bob.ask("@echo three")
    expect(ann.turns.nth(2).locator(".markdown")).to_contain_text("three")
    thread = ann.page.url.rpartition("/")[2]
    loopback.post(f"{host.url}/api/v1/agent/sessions/{thread}/messages", json={"payload": "@echo from elsewhere"})
    for visitor in (ann, bob):
        expect(visitor.turns.nth(3).locator(".bubble")).to_contain_text("from elsewhere")
        expect(visitor.turns).to_have_count(4)


def test_further_messages_wait_in_line_and_are_answered_in_order(visit: Visit) -> None:
    ann = visit(agent="slow")
    ann.write("count 5000 0.02")
    expect(ann.turns.first.locator(".markdown")).to_contain_text("2 ")
    ann.write("@echo later")
    expect(ann.page.get_by_text("Waiting in line")).to_be_visible()
    expect(ann.turns.nth(1).locator(".speaker")).to_contain_text("Echo")  # who will answer
    ann.page.get_by_role("button", name="Stop").click()
    expect(ann.turns.first.locator(".stopped")).to_be_visible()
    expect(ann.turns.nth(1).locator(".markdown")).to_contain_text("later")
    expect(ann.turns).to_have_count(2)


def test_an_image_is_attached_with_a_preview_and_is_there_after_a_reload(visit: Visit) -> None:
    ann = visit(agent="echo")
    ann.ask("look:")
    ann.page.locator("input[type=file]").set_input_files({"name": "dot.png", "mimeType": "image/png", "buffer": DOT})
    expect(ann.page.locator(".previews img")).to_be_visible()
    expect(ann.page.get_by_text("Uploading…")).to_have_count(0)
    ann.ask("what is this?")
    expect(ann.page.locator(".previews img")).to_have_count(0)
    for _ in range(2):
        picture = ann.turns.nth(1).locator(".bubble img")
        expect(picture).to_have_js_property("naturalWidth", 8)
        ann.page.reload()


def test_a_file_that_is_not_taken_is_named_and_one_too_many_is_said(visit: Visit) -> None:
    ann = visit(agent="echo")
    ann.forgiving = True  # the browser reports the refusal
    files = ann.page.locator("input[type=file]")
    files.set_input_files({"name": "broken.png", "mimeType": "image/png", "buffer": b"nonsense"})
    expect(ann.page.locator(".composer").get_by_role("alert")).to_contain_text("broken.png: ")
    expect(ann.page.locator(".previews img")).to_have_count(0)
    files.set_input_files([{"name": f"{n}.png", "mimeType": "image/png", "buffer": DOT} for n in range(5)])
    expect(ann.page.locator(".previews img")).to_have_count(3)
    expect(ann.page.locator(".composer").get_by_role("alert")).to_contain_text("A message takes 3 images; left out: 2.")


def test_who_waits_in_line_has_the_colour_it_speaks_in(visit: Visit) -> None:
    ann = visit(agent="slow")
    ann.write("count 60 0.02")
    ann.write("count 2 0")
    waiting = ann.turns.nth(1).locator(".avatar")
    expect(ann.turns.nth(1)).to_contain_text("Waiting in line")
    colour = waiting.get_attribute("class")
    expect(ann.turns.nth(1).locator(".turn-footer")).to_have_count(1)
    assert waiting.get_attribute("class") == colour


def test_a_message_sent_while_its_picture_is_on_its_way_follows_it(visit: Visit) -> None:
    ann = visit(agent="echo")
    held: list[Route] = []
    ann.page.route("**/api/v1/agent/attachments", lambda route: held.append(route))  # noqa: PLW0108 - a list's own method cannot be marked, as Playwright does
    ann.page.locator("input[type=file]").set_input_files({"name": "dot.png", "mimeType": "image/png", "buffer": DOT})
    expect(ann.page.get_by_text("Uploading…")).to_be_visible()
    ann.write("what is this?")
    expect(ann.page.get_by_role("button", name="Send")).to_be_disabled()  # it is sent already, in a way
    expect(ann.turns).to_have_count(0)
    held[0].continue_()
    expect(ann.turns.first.locator(".bubble img")).to_have_js_property("naturalWidth", 8)
    expect(ann.turns.first.locator(".markdown")).to_contain_text("what is this?")
    expect(ann.turns).to_have_count(1)


TO_THE_TOP = """() => {
  document.querySelector(".scroller").scrollTop = 0;
  return document.body.innerText.split("\\n").includes("question 0");
}"""
"""Again and again, as a hand does: what is measured on the way up may still move the page."""


def test_ten_thousand_messages_scroll_and_only_what_is_in_sight_is_drawn(visit: Visit) -> None:
    ann = visit()
    ann.forgiving = True  # the stream of this conversation is cut off, and the browser says so
    ann.page.goto(tell(ann, [turns_of(5_000)]))
    expect(ann.page.get_by_text("question 4999", exact=True)).to_be_in_viewport()
    upwards = scroll(ann.page, 40, -700)
    assert upwards["most"] < 60
    assert upwards["empty"] == 0
    assert upwards["median"] < 200  # a loaded machine; the figures of a quiet one are in docs/results.md
    ann.page.wait_for_function(TO_THE_TOP, polling=200)
    expect(ann.page.get_by_text("question 0", exact=True)).to_be_in_viewport()
    ann.page.get_by_role("button", name="To the newest message").click()
    expect(ann.page.get_by_text("question 4999", exact=True)).to_be_in_viewport()


PLACE = """top => {
  const box = document.querySelector('.scroller');
  if (top !== null) box.scrollTop = top;
  const edge = box.getBoundingClientRect().top;
  const first = [...document.querySelectorAll('article.turn')].find((one) => one.getBoundingClientRect().top > edge);
  return [first.dataset.turn, first.getBoundingClientRect().top];
}"""


def scroll_to(ann: Visitor, place: int, sought: Locator) -> None:
    """As often as it takes: heights are guessed until a turn was drawn, so the place moves under a busy machine."""
    for _ in range(300):
        ann.page.evaluate(PLACE, place)
        if sought.is_visible():
            break
        ann.page.wait_for_timeout(100)
    expect(sought).to_be_visible()


def test_earlier_days_come_above_and_nobody_loses_their_place(visit: Visit) -> None:
    ann = visit()
    ann.forgiving = True
    ann.page.goto(tell(ann, [turns_of(40, 0, 1), turns_of(40, 40, 2), turns_of(40, 80, 3)]))
    expect(ann.page.get_by_text("question 119", exact=True)).to_be_in_viewport()
    scroll_to(ann, 1_400, ann.page.get_by_text("question 82", exact=True))
    turn, top = ann.page.evaluate(PLACE, 500)
    expect(ann.page.locator("article.turn[aria-setsize='80']").first).to_be_attached()
    assert ann.page.evaluate(PLACE, None) == [turn, pytest.approx(top, abs=3)]
    scroll_to(ann, 0, ann.page.locator("article.turn[aria-setsize='120']").first)


MARKED = "(words) => [...CSS.highlights.get('sought') ?? []].map((range) => range.toString()).join() === words"
IN_SIGHT = """(wanted) => {
  const box = document.querySelector('.scroller').getBoundingClientRect();
  const word = [...CSS.highlights.get('sought') ?? []][0]?.getBoundingClientRect();
  return Boolean(word?.height && word.top >= box.top && word.bottom <= box.bottom) === wanted;
}"""


def hit(thread: str, turn: int, item: int, word: str) -> dict[str, Any]:
    """What the host answers when this is found in a conversation."""
    run = f"00000000-0000-7000-8000-{turn:012d}"
    pieces = [{"text": "…", "hit": False}, {"text": word, "hit": True}]
    said = {"itemId": f"{run}.{item}", "role": "assistant", "timestamp": START, "snippet": pieces}
    seen = {"threadId": thread, "title": "long", "archived": False, "closed": False, "items": 0}
    return seen | {"createdAt": START, "updatedAt": START, "found": {"message": said}}


def test_a_message_that_was_found_is_brought_in_sight_with_its_words_marked_however_far_back(visit: Visit) -> None:
    ann = visit()
    ann.forgiving = True
    days = [turns_of(300, 0, 1), *(turns_of(40, 260 + 40 * day, day) for day in range(2, 12)), turns_of(2_000, 740, 12)]
    days[0][23]["content"] = "words " * 3_000 + "wombat"
    address = tell(ann, days)
    found = {"sessions": [hit(address.rpartition("/")[2], 11, 1, "wombat")], "next": None, "complete": True}
    ann.page.route("**/agent/sessions?query=*", lambda route: answer(route, found))
    ann.page.goto(address)
    expect(ann.page.get_by_text("question 2739", exact=True)).to_be_in_viewport()
    ann.page.get_by_label("Search conversations").fill("wombat")
    ann.page.locator(".threads li:has(mark) > a").click()
    turn = ann.page.locator("article.turn.sought[data-turn$='000000000011']")
    for _ in range(2):
        expect(turn.locator(".markdown")).to_contain_text("wombat")
        ann.page.wait_for_function(MARKED, arg="wombat")
        ann.page.wait_for_function(IN_SIGHT, arg=True)
        ann.page.get_by_role("button", name="To the newest message").click()
        expect(ann.page.get_by_text("question 2739", exact=True)).to_be_in_viewport()
        assert "at=" not in ann.page.url
        ann.page.locator(".threads li:has(mark) > a").click()
    ann.page.locator(".scroller").hover()
    ann.page.wait_for_function(IN_SIGHT, arg=True)
    ann.page.mouse.wheel(0, 900)
    ann.page.wait_for_function(IN_SIGHT, arg=False)  # it lets go


TABLE = """| 算法名称 | best | average | worst | memory | stable | what is to be said of it |
|---|---:|---:|---:|---:|:---:|---|
| quicksort | n log n | n log n | n^2 | log n | no | in place, quick, famous for its worst case |

- [x] done
- [ ] open"""


def test_a_wide_table_is_scrolled_and_no_word_in_it_is_broken(visit: Visit) -> None:
    """On a telephone the letters of a word stood one below the other."""
    ann = visit(agent="echo", width=360, height=740, bypass_csp=True)
    turn = ann.ask(TABLE)
    for word in ("算法名称", "average", "quicksort", "stable"):
        cell = turn.get_by_role("cell", name=word, exact=True).or_(
            turn.get_by_role("columnheader", name=word, exact=True)
        )
        lines = cell.evaluate(
            "c => { const r = document.createRange(); r.selectNodeContents(c); return r.getClientRects().length }"
        )
        assert (word, lines) == (word, 1)
    assert turn.locator(".table-wrap").evaluate("place => place.scrollWidth > place.clientWidth")
    expect(turn.locator(".task-list-item").first).to_have_css("list-style-type", "none")
    fits(ann)


def test_a_message_that_waits_in_line_can_be_taken_back(visit: Visit) -> None:
    ann = visit(agent="slow")
    ann.write("count 5000 0.02")
    expect(ann.turns.first.locator(".markdown")).to_contain_text("3 ")
    ann.write("said too soon")
    expect(ann.turns.nth(1)).to_contain_text("Waiting in line")
    ann.button("chat.unqueue", ann.turns.nth(1)).click()
    expect(ann.turns.nth(1).locator(".stopped")).to_contain_text("before anything was said")
    expect(ann.button("chat.stop")).to_be_visible()  # the other goes on
    ann.button("chat.stop").click()
    expect(ann.turns.first.locator(".stopped")).to_be_visible()


def test_asking_again_in_the_middle_says_what_is_left_behind_before_it_is(visit: Visit) -> None:
    """Everything after it was gone with one press."""
    ann = visit(agent="echo")
    ann.ask("first")
    ann.ask("second")
    ann.turns.first.hover()
    ann.button("chat.regenerate", ann.turns.first).click()
    sure = ann.page.get_by_role("dialog")
    expect(sure).to_contain_text("What was said after it is left behind")
    ann.button("app.cancel", sure).click()
    expect(ann.turns).to_have_count(2)
    ann.button("chat.edit", ann.turns.first).click()
    expect(ann.turns.first).to_contain_text("What was said after it is left behind")
    ann.button("app.cancel", ann.turns.first).click()
    ann.button("chat.regenerate", ann.turns.first).click()
    ann.button("chat.retry", sure).click()
    expect(ann.turns).to_have_count(1)
    expect(ann.turns.first.locator(".markdown")).to_contain_text("first")


def test_whoever_pressed_a_suggestion_or_stop_can_write_on(visit: Visit) -> None:
    ann = visit(agent="slow")
    ann.page.locator(".tries").get_by_role("button", name="hello").click()
    expect(ann.turns.first.locator(".markdown")).to_contain_text("hello")
    expect(ann.box).to_be_focused()
    ann.write("count 5000 0.02")
    expect(ann.turns.nth(1).locator(".markdown")).to_contain_text("3 ")
    ann.button("chat.stop").click()
    expect(ann.turns.nth(1).locator(".stopped")).to_be_visible()
    expect(ann.box).to_be_focused()
