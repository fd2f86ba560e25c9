"""Half an answer is shown as half an answer, with why and with a way to ask again: live, and whoever comes later."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

from browser.conftest import a_host
from browser.people import Visitor
from browser.wide import Reader, fits
from loopback import free_port
from model_server import ModelServer, Says

Visit = Callable[..., Visitor]


def cut_short(ann: Visitor, text: str = "count 5000 0.02") -> Locator:
    """An answer is stopped when it has begun."""
    ann.write(text)
    expect(ann.turns.first.locator(".markdown")).to_contain_text("3 ")
    ann.button("chat.stop").click()
    expect(ann.turns.first.locator(".stopped")).to_be_visible()
    return ann.turns.first


def test_words_that_break_off_are_marked_where_they_do_and_it_is_said_why(visit: Visit) -> None:
    ann = visit(agent="slow")
    cut_short(ann)
    bob = visit(ann.page.url)
    for person in (ann, bob):
        expect(person.turns.first.locator(".cut")).to_have_text("The words break off here.")
        expect(person.turns.first.locator(".stopped")).to_contain_text("This answer is unfinished: it was stopped.")
        expect(person.button("chat.retry", person.turns.first)).to_be_visible()
    expect(ann.page.locator("[aria-live]").last).to_contain_text("The words break off here.")  # for ears
    turn = bob.ask("crash")
    bob.page.reload()
    expect(turn.locator(".cut")).to_be_visible()
    expect(turn.locator(".failed")).to_contain_text("This answer is unfinished: it failed in the middle")


def test_what_was_whole_before_it_failed_or_never_began_is_not_said_to_break_off(visit: Visit) -> None:
    ann = visit(agent="slow")
    ann.ask("hello")
    expect(ann.turns.first.locator(".markdown")).to_have_text("hello")
    dead = ann.ask("die")
    expect(dead.locator(".failed")).to_contain_text("This answer failed")
    ann.write("hang")
    ann.button("chat.stop").click()
    expect(ann.turns.nth(2).locator(".stopped")).to_contain_text("It was stopped before anything was said.")
    expect(ann.page.locator(".cut")).to_have_count(0)


def test_half_an_answer_is_known_as_one_where_nothing_tells_why(visit: Visit) -> None:
    """Its run was long ago, and history alone still has it."""
    ann = visit(agent="slow")
    ann.forgiving = True
    cut_short(ann)
    ann.page.route("**/api/v1/agent/runs?*", lambda route: route.fulfill(json={"runs": [], "next": None}))
    ann.page.route("**/api/v1/agent/runs/*/events", lambda route: route.fulfill(status=404, json={"code": "not_found"}))
    ann.page.reload()
    expect(ann.turns.first.locator(".stopped")).to_have_text("This answer is unfinished")
    expect(ann.turns.first.locator(".cut")).to_be_visible()
    expect(ann.button("chat.retry", ann.turns.first)).to_be_visible()


@pytest.mark.long
def test_an_unfinished_answer(reader: Reader, model: ModelServer) -> None:
    """Stopped, and failed, at every size and in every language, by day and by night."""
    arrive, say = reader
    for light in ("light", "dark"):
        ann = arrive(agent="slow", color_scheme=light)
        turn = cut_short(ann)
        expect(turn.locator(".cut")).to_have_text(say["chat.cut"])
        fits(ann)
        model.says(Says("a story of seven words and more", fail_after=4))
        failed = ann.ask("@free tell a story")
        expect(failed.locator(".failed")).to_contain_text(say["chat.failed_middle"])
        fits(ann)


def test_a_host_that_is_stopped_in_the_middle_says_so_when_it_is_back(
    visit: Visit, browser: Browser, tmp_path: Path
) -> None:
    assert browser.is_connected()
    host = a_host(tmp_path)
    host.extra = ("--port", str(free_port()))
    host.start()
    ann = visit(f"{host.url}/#/?agent=slow")
    ann.forgiving = True
    ann.write("count 5000 0.02")
    expect(ann.turns.first.locator(".markdown")).to_contain_text("3 ")
    assert host.stop() == 0
    host.start()
    for _ in range(2):
        expect(ann.turns.first.locator(".failed")).to_contain_text("The host was stopped while this was answered")
        expect(ann.turns.first.locator(".cut")).to_be_visible()
        ann.page.reload()
    ann.turns.first.get_by_role("link", name="How this came about").click()
    expect(ann.page.locator(".error-text")).to_contain_text("The host was stopped while this was answered")
    assert host.stop() == 0
