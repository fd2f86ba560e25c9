"""What somebody types, opens or presses while the page learns more of the conversation: none of it is lost or moved."""

import re
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager

from playwright.sync_api import Locator, Page, Route, expect

import loopback
from browser.long_threads import tell, turns_of
from browser.people import Visitor

Visit = Callable[..., Visitor]
GROWN = "([box, height]) => box.scrollHeight > height + 60"


@contextmanager
def pressed(page: Page, button: Locator) -> Generator[None]:
    """The button is down meanwhile."""
    place = button.bounding_box()
    assert place is not None
    page.mouse.move(place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
    page.mouse.down()
    yield
    page.mouse.up()


@contextmanager
def held(page: Page, pattern: str) -> Generator[None]:
    """Requests of this kind wait meanwhile."""
    waiting: list[Route] | None = []
    page.route(re.compile(pattern), lambda route: route.continue_() if waiting is None else waiting.append(route))
    yield
    routes, waiting = waiting, None
    for route in routes:
        route.continue_()


def card_of(turn: Locator) -> Locator:
    return turn.get_by_role("region", name="made by the agent")


def say_elsewhere(ann: Visitor, text: str, **more: str) -> None:
    thread = ann.page.url.rpartition("/")[2]
    said = loopback.post(
        f"{ann.url.split('/#')[0]}/api/v1/agent/sessions/{thread}/messages", json={"payload": text, **more}
    )
    assert said.status_code == 202, said.text


def test_nothing_moves_under_a_pressed_button_while_an_answer_grows(visit: Visit) -> None:
    ann = visit(agent="asker", height=600)
    card = card_of(ann.ask("card"))
    say_elsewhere(ann, "count 5000 0.02", agent_id="slow")
    expect(ann.turns.nth(1).locator(".markdown")).to_contain_text("3 ")
    box = ann.page.locator(".scroller")
    card.get_by_role("button", name="Coffee").scroll_into_view_if_needed()
    height = box.evaluate("box => box.scrollHeight")
    with pressed(ann.page, card.get_by_role("button", name="Coffee")):
        ann.page.wait_for_function(GROWN, arg=[box.element_handle(), height])
    expect(card.get_by_role("button", name="Coffee")).to_be_disabled()
    ann.page.get_by_role("button", name="Stop").click()
    expect(ann.turns.nth(2).locator(".markdown")).to_contain_text("Heard: Coffee")


def test_what_somebody_says_is_in_sight_wherever_they_were_reading(visit: Visit) -> None:
    ann = visit(agent="echo", height=500)
    ann.ask("first " * 800)
    ann.page.locator(".scroller").evaluate("box => { box.scrollTop = 0 }")
    expect(ann.page.get_by_role("button", name="To the newest message")).to_be_visible()
    ann.write("second")
    expect(ann.turns.nth(1).locator(".markdown")).to_be_in_viewport()


def test_what_is_typed_into_a_card_and_a_message_stays_while_history_becomes_whole(visit: Visit) -> None:
    ann = visit(agent="asker")
    ann.ask("card")
    card = card_of(ann.turns.first)
    with held(ann.page, r"/agent/runs/[^/?]+/events$"):
        ann.page.reload()
        card.get_by_label("Colour").select_option("green")
        ann.turns.first.get_by_role("button", name="Edit").click()
        ann.page.get_by_label("Edit your message").fill("instead")
    with held(ann.page, r"/agent/history\?"):
        say_elsewhere(ann, "hello")
        expect(ann.turns.nth(1).locator(".markdown")).to_contain_text("Heard: hello")
        card.get_by_label("How many").fill("3")
    expect(ann.turns.nth(1).locator(".bubble")).to_contain_text("hello")
    expect(ann.page.get_by_label("Edit your message")).to_have_value("instead")
    card.get_by_role("button", name="Order").click()
    expect(ann.turns.nth(2).locator(".bubble")).to_contain_text("green")


def test_a_question_stays_where_it_is_while_history_is_read_again(visit: Visit) -> None:
    ann = visit(agent="careful")
    question = ann.page.get_by_role("region", name="Careful has a question")
    ann.ask('call calculate {"expression": "1 + 1"}')
    with ExitStack() as history:
        history.enter_context(held(ann.page, r"/agent/history\?"))
        question.get_by_role("button", name="No").click()
        expect(ann.turns.nth(1).locator(".markdown")).to_contain_text("did not approve")
        ann.ask('call calculate {"expression": "6 * 7"}')
        with pressed(ann.page, question.get_by_role("button", name="No")):
            history.close()
    expect(ann.turns.nth(3).locator(".markdown")).to_contain_text("did not approve")
    expect(question).to_have_count(0)


def test_what_is_typed_and_unfolded_is_there_when_it_comes_back_into_the_window(visit: Visit) -> None:
    ann = visit()
    ann.forgiving = True  # the stream of this conversation is cut off, and the browser says so
    fields = [{"name": "who", "label": "Who", "input": "text", "required": True}]
    form = {"type": "form", "key": "f", "fields": fields, "submit": "Send", "action": {"kind": "say", "ref": "x"}}
    told = turns_of(60)
    told[-1]["ui_schema"] = {
        "version": "2.0",
        "root": {"type": "collapse", "key": "c", "label": "More", "children": [form]},
    }
    ann.page.goto(tell(ann, [told]))
    last = ann.page.locator("article.turn[data-turn$='000059']")
    last.get_by_text("More", exact=True).click()
    last.get_by_label("Who").fill("Ann")
    last.get_by_role("button", name="Edit").click()
    last.get_by_label("Edit your message").fill("other words")
    ann.page.get_by_label("Message", exact=True).fill("for later")
    ann.page.locator(".scroller").evaluate("box => { box.scrollTop = 0 }")
    expect(last).to_have_count(0)
    ann.page.get_by_role("button", name="To the newest message").click()
    expect(last.get_by_label("Who")).to_have_value("Ann")
    expect(last.get_by_label("Edit your message")).to_have_value("other words")
    ann.page.get_by_role("link", name="Agents").click()
    expect(ann.page.get_by_role("heading", name="Runners")).to_be_visible()
    ann.page.go_back()
    expect(ann.page.get_by_label("Message", exact=True)).to_have_value("for later")
    expect(last.get_by_label("Who")).to_have_value("Ann")
