"""The wide set: networks and hosts that go away, several browsers, and an agent that means harm; everywhere alike."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from browser.conftest import a_host
from browser.test_pages import HOSTILE
from browser.test_trouble import slow_down, spoken, words_of
from browser.wide import Reader, fits
from loopback import free_port

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


def test_a_reload_in_the_middle(reader: Reader) -> None:
    arrive, _ = reader
    ann = arrive(agent="slow")
    ann.write("count 60 0.05")
    expect(ann.turns.first.locator(".markdown")).to_contain_text("5 ")
    ann.page.reload()
    expect(ann.turns.first.locator(".turn-footer")).to_have_count(1)
    expect(ann.turns).to_have_count(1)
    assert spoken(ann) == words_of(60)
    fits(ann)


def test_the_network_goes_away(reader: Reader) -> None:
    arrive, say = reader
    ann = arrive(agent="slow")
    ann.forgiving = True  # the browser reports each request that fails
    ann.write("count 60 0.05")
    expect(ann.turns.first.locator(".markdown")).to_contain_text("3 ")
    ann.context.set_offline(True)
    expect(ann.page.get_by_text(say["chat.lost"])).to_be_visible()
    fits(ann)
    ann.context.set_offline(False)
    expect(ann.turns.first.locator(".turn-footer")).to_have_count(1)
    expect(ann.page.get_by_text(say["chat.lost"])).to_have_count(0)
    assert spoken(ann) == words_of(60)


def test_a_message_could_not_be_sent(reader: Reader) -> None:
    arrive, say = reader
    ann = arrive(agent="echo")
    ann.forgiving = True
    ann.ask("before")
    ann.context.set_offline(True)
    ann.write("kept")
    expect(ann.page.get_by_text(say["chat.not_sent"])).to_be_visible()
    fits(ann)
    ann.context.set_offline(False)
    ann.button("app.retry").click()
    expect(ann.turns.nth(1).locator(".markdown")).to_contain_text("kept")
    ann.page.reload()
    expect(ann.turns.nth(1).locator(".markdown")).to_contain_text("kept")
    expect(ann.turns).to_have_count(2)


def test_a_slow_network(reader: Reader) -> None:
    arrive, say = reader
    ann = arrive(agent="slow")
    expect(ann.box).to_be_focused()
    slow_down(ann)
    ann.write("count 40 0.01")
    expect(ann.page.get_by_text(say["chat.sending"])).to_be_visible()
    expect(ann.turns.first.locator(".turn-footer")).to_have_count(1)
    ann.page.reload()
    expect(ann.turns.first.locator(".turn-footer")).to_have_count(1)
    assert spoken(ann) == words_of(40)
    fits(ann)


def test_two_browsers(reader: Reader) -> None:
    arrive, _ = reader
    ann = arrive(agent="echo")
    ann.ask("one")
    bob = arrive(ann.page.url)
    expect(bob.turns.first.locator(".markdown")).to_contain_text("one")
    bob.ask("two")
    expect(ann.turns.nth(1).locator(".bubble")).to_contain_text("two")
    ann.ask("three")
    for person in (ann, bob):
        expect(person.turns.nth(2).locator(".markdown")).to_contain_text("three")
        expect(person.turns).to_have_count(3)
        fits(person)


def test_a_hostile_agent(reader: Reader) -> None:
    arrive, _ = reader
    ann = arrive(agent="echo")
    turn = ann.ask(HOSTILE + " " + "w" * 400)
    for _ in range(2):
        expect(turn.locator(".markdown")).to_be_visible()
        assert turn.locator(".markdown :is(script, img, iframe, style, a[href])").count() == 0
        assert ann.page.evaluate("window.hacked") is None
        fits(ann)
        ann.page.reload()


def test_the_host_dies(reader: Reader, browser: Browser, tmp_path: Path) -> None:
    arrive, say = reader
    assert browser.is_connected()
    host = a_host(tmp_path)
    host.extra = ("--port", str(free_port()))
    host.start()
    ann = arrive(f"{host.url}/#/?agent=slow")
    ann.forgiving = True
    ann.write("count 5000 0.02")
    expect(ann.turns.first.locator(".markdown")).to_contain_text("3 ")
    host.kill()
    expect(ann.page.get_by_text(say["chat.lost"])).to_be_visible()
    fits(ann)
    host.start()
    expect(ann.turns.first.locator(".failed")).to_contain_text(say["chat.interrupted"])
    said = spoken(ann)
    assert said == words_of(len(said))
    fits(ann)
    ann.button("chat.retry").click()
    expect(ann.turns.first.locator(".markdown")).to_contain_text("3 ")
    assert host.stop() == 0
