"""When the network is slow, or gone, or the host is: no word lost, none doubled, and it is said."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route, expect

from browser.conftest import a_host
from browser.people import Visitor
from loopback import free_port
from walk.hosts import HostProcess

Visit = Callable[..., Visitor]


def words_of(count: int) -> list[str]:
    return [str(number) for number in range(count)]


def spoken(ann: Visitor, turn: int = 0) -> list[str]:
    return ann.turns.nth(turn).locator(".markdown").inner_text().split()


def slow_down(ann: Visitor) -> None:
    """As a poor mobile connection: two fifths of a second to the host, 30 kB a second from it."""
    session = ann.context.new_cdp_session(ann.page)
    session.send("Network.enable")
    poor = {"offline": False, "latency": 400, "downloadThroughput": 30_000, "uploadThroughput": 10_000}
    session.send("Network.emulateNetworkConditions", poor)


def test_a_network_that_goes_away_is_said_and_what_was_missed_comes_later(visit: Visit) -> None:
    ann = visit(agent="slow")
    ann.forgiving = True  # the browser reports each request that fails
    ann.write("count 60 0.05")
    expect(ann.turns.first.locator(".markdown")).to_contain_text("3 ")
    ann.context.set_offline(True)
    expect(ann.page.get_by_text("Connection lost")).to_be_visible()
    ann.context.set_offline(False)
    expect(ann.turns.first.locator(".turn-footer")).to_have_count(1)
    expect(ann.page.get_by_text("Connection lost")).to_have_count(0)
    assert spoken(ann) == words_of(60)


def test_a_message_that_could_not_be_sent_stays_and_is_sent_once(visit: Visit, host: HostProcess) -> None:
    ann = visit()
    ann.forgiving = True
    ann.ask("@echo before")
    ann.context.set_offline(True)
    ann.write("@echo kept")
    expect(ann.page.get_by_text("Not sent")).to_be_visible()
    expect(ann.page.locator(".state.failed")).to_contain_text("Try again when it is there.")
    ann.page.locator(".threads > a.button").click()
    expect(ann.page.get_by_text("Not sent")).to_have_count(0)
    ann.page.go_back()
    expect(ann.page.get_by_text("Not sent")).to_be_visible()
    ann.context.set_offline(False)
    ann.page.get_by_role("button", name="Try again").click()
    expect(ann.turns.nth(1).locator(".markdown")).to_contain_text("kept")
    ann.page.reload()
    expect(ann.turns.nth(1).locator(".markdown")).to_contain_text("kept")
    expect(ann.turns).to_have_count(2)


def test_a_search_without_a_network_says_so_and_goes_on_by_itself(visit: Visit) -> None:
    ann = visit(agent="echo")
    ann.forgiving = True
    ann.ask("a bandicoot")
    ann.context.set_offline(True)
    ann.page.get_by_label("Search conversations").fill("bandi")
    expect(ann.page.locator(".threads").get_by_role("alert")).to_contain_text("cannot be reached")
    ann.context.set_offline(False)
    expect(ann.page.locator(".threads li mark").first).to_have_text("bandi")


def test_every_page_is_there_without_the_host_and_fills_when_it_is_back(visit: Visit) -> None:
    """A page that was not yet fetched took the whole console with it: white until somebody reloaded it."""
    ann = visit(agent="echo")
    ann.forgiving = True
    ann.ask("before")
    ann.context.set_offline(True)
    ann.page.get_by_role("link", name="Operate").click()
    expect(ann.page.locator("main").get_by_role("alert").first).to_contain_text("cannot be reached")
    ann.page.get_by_role("link", name="Agents").click()
    expect(ann.page.get_by_role("heading", name="Agents", exact=True)).to_be_visible()
    ann.page.get_by_role("link", name="Operate").click()
    ann.context.set_offline(False)
    expect(ann.page.get_by_role("cell", name="Echo").first).to_be_visible()


def test_a_page_that_breaks_says_so_and_the_others_go_on(visit: Visit) -> None:
    ann = visit()
    ann.forgiving = True
    ann.page.route("**/api/v1/agent/runs?*", lambda route: route.fulfill(json={"runs": [None]}))
    ann.page.get_by_role("link", name="Operate").click()
    expect(ann.page.locator("main").get_by_role("alert")).to_contain_text("This page stopped working")
    ann.page.get_by_role("link", name="Chat", exact=True).click()
    expect(ann.page.get_by_label("Message", exact=True)).to_be_visible()


def test_a_text_that_is_too_long_is_kept_whole_and_said_and_sent_when_it_is_shorter(visit: Visit) -> None:
    ann = visit(agent="echo")
    box, send = ann.page.get_by_label("Message", exact=True), ann.page.get_by_role("button", name="Send")
    box.fill("y" * 10_400)
    ann.sees("10,400 characters; a message may have 10,000")
    expect(send).to_be_disabled()
    box.press("Enter")
    expect(box).to_have_value("y" * 10_400)
    box.fill("🙂" * 5_100)  # more than 10,000 of the browser's own units, and fewer characters
    expect(send).to_be_enabled()
    assert ann.ask("short").is_visible()


def test_on_a_slow_network_everything_comes_and_comes_once(visit: Visit) -> None:
    ann = visit(agent="slow")
    expect(ann.page.get_by_label("Message", exact=True)).to_be_focused()
    slow_down(ann)
    ann.write("count 40 0.01")
    expect(ann.page.get_by_text("Sending…")).to_be_visible()
    expect(ann.turns.first.locator(".turn-footer")).to_have_count(1)
    ann.page.reload()
    expect(ann.turns.first.locator(".turn-footer")).to_have_count(1)
    assert spoken(ann) == words_of(40)
    expect(ann.turns).to_have_count(1)


@pytest.mark.long
def test_a_host_that_dies_in_the_middle_is_said_and_the_answer_is_shown_as_interrupted(
    visit: Visit, browser: Browser, tmp_path: Path
) -> None:
    assert browser.is_connected()
    port = free_port()
    host = a_host(tmp_path)
    host.extra = ("--port", str(port))
    host.start()
    ann = visit(f"{host.url}/#/?agent=slow")
    ann.forgiving = True
    ann.write("count 5000 0.02")
    expect(ann.turns.first.locator(".markdown")).to_contain_text("3 ")
    bob = visit(f"{host.url}/#/run/{ann.turns.first.get_attribute('data-turn')}")
    bob.forgiving = True
    expect(bob.page.locator(".page-head")).to_contain_text("running")
    host.kill()
    expect(ann.page.get_by_text("Connection lost")).to_be_visible()
    ann.page.get_by_role("button", name="Stop").click()
    for person in (ann, bob):
        expect(person.page.get_by_text("cannot be reached").first).to_be_visible()
    host.start()
    expect(bob.page.locator(".page-head")).to_contain_text("failed")
    for person in (ann, bob):
        expect(person.page.get_by_text("cannot be reached")).to_have_count(0)
    expect(ann.turns.first.locator(".failed")).to_contain_text("The host was restarted while this was answered")
    expect(ann.turns.first.locator(".failed")).not_to_contain_text(
        "in progress"
    )  # the same once more, always in English
    said = spoken(ann)
    assert said == words_of(len(said))
    ann.page.get_by_role("button", name="Ask again").click()
    expect(ann.turns.first.locator(".markdown")).to_contain_text("3 ")
    assert host.stop() == 0


def test_while_nobody_knows_who_is_there_the_pages_say_so_in_whole_sentences(visit: Visit) -> None:
    """Right after its start a host asks its runners who they are, and that takes a moment."""
    ann = visit()
    ann.page.route("**/api/v1/agents", lambda _: None)  # no answer yet
    ann.page.reload()
    expect(ann.page.get_by_label("Message", exact=True)).to_have_attribute("placeholder", "Write a message…")
    ann.page.get_by_role("link", name="Agents").click()
    expect(ann.page.locator("main").get_by_text("Loading…")).to_be_visible()
    ann.page.unroute("**/api/v1/agents")


def test_a_stop_while_the_message_is_still_on_its_way_counts(visit: Visit) -> None:
    """There was nothing to press, and Escape was lost."""
    ann = visit(agent="slow")
    kept: list[Route] = []

    def keep(route: Route) -> None:
        kept.append(route)

    ann.page.route("**/api/v1/agent/runs?agent=slow", keep)
    ann.write("count 5000 0.02")
    expect(ann.page.get_by_text("Sending…")).to_be_visible()
    expect(ann.button("chat.stop")).to_be_visible()
    ann.box.press("Escape")
    expect(ann.button("chat.stopping")).to_be_disabled()
    kept[0].continue_()
    expect(ann.turns.first.locator(".stopped")).to_be_visible()


def test_what_was_on_the_page_is_there_again_when_somebody_comes_back_and_the_host_is_away(visit: Visit) -> None:
    """The conversation was empty until the host was back."""
    ann = visit(agent="echo")
    ann.forgiving = True
    ann.ask("something to come back to")
    ann.context.set_offline(True)
    ann.page.get_by_role("link", name="Agents").click()
    expect(ann.page.get_by_role("heading", name="Agents", exact=True)).to_be_visible()
    ann.page.go_back()
    expect(ann.turns.first.locator(".markdown")).to_contain_text("something to come back to")
    expect(ann.page.get_by_text("Connection lost")).to_be_visible()
    expect(ann.box).to_have_attribute("placeholder", re.compile("Write to Echo"))
    ann.context.set_offline(False)
    expect(ann.page.get_by_text("Connection lost")).to_have_count(0)
    ann.ask("and on")
    expect(ann.turns).to_have_count(2)


def test_a_conversation_that_is_deleted_while_it_is_on_the_page_says_so(visit: Visit, host: HostProcess) -> None:
    ann = visit(agent="echo")
    ann.forgiving = True
    ann.ask("soon gone")
    thread = re.search(r"[0-9a-f-]{36}", ann.page.url)
    assert thread is not None
    with host.client() as client:
        assert client.delete(f"/api/v1/agent/sessions/{thread[0]}").status_code == 204
    expect(ann.page.get_by_text("This conversation was deleted.")).to_be_visible()
    expect(ann.page.get_by_role("button", name="Try again")).to_have_count(0)
    expect(ann.page.get_by_text("Connection lost")).to_have_count(0)
    ann.page.locator(".chat").get_by_role("link", name="New conversation").click()
    ann.ask("and on")


def test_a_conversation_that_was_deleted_elsewhere_says_so(visit: Visit, host: HostProcess) -> None:
    ann = visit(agent="echo")
    ann.forgiving = True
    ann.ask("soon gone")
    ann.page.get_by_role("link", name="Agents").click()
    with host.client() as client:
        thread = re.search(
            r"[0-9a-f-]{36}", ann.page.evaluate("history.length && document.querySelector('.threads li a').href")
        )
        assert thread is not None
        assert client.delete(f"/api/v1/agent/sessions/{thread[0]}").status_code == 204
    ann.page.go_back()
    expect(ann.page.get_by_text("This conversation does not exist, or it is not yours.")).to_be_visible()
    expect(ann.turns).to_have_count(0)
