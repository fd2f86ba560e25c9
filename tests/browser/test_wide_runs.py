"""The wide set: the story of a run, at both sizes and in both languages."""

import re

import pytest
from playwright.sync_api import Locator, expect

from browser.people import Visitor
from browser.wide import Reader, fits

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


def open_story(ann: Visitor, turn: int = 0) -> None:
    ann.turns.nth(turn).get_by_role("link", name=ann.say["chat.run"]).click()
    expect(ann.page.get_by_role("heading", name=ann.say["run.timeline"])).to_be_visible()


def panel(ann: Visitor, word: str) -> Locator:
    return ann.page.locator(".panel", has=ann.page.get_by_role("heading", name=ann.say[word], exact=True))


def only(ann: Visitor, kind: str) -> Locator:
    """The entries of this kind, after the rest is put away."""
    name = re.compile(rf"^{re.escape(ann.say[f'run.kind.{kind}'])} \(")
    ann.page.get_by_role("button", name=name).click()
    return ann.page.locator(".timeline > li")


def test_a_run_tells(reader: Reader) -> None:
    """What it was given and allowed, each call with its decision and why, tools, tokens and cost."""
    arrive, say = reader
    ann = arrive(agent="helper")
    ann.ask('call calculate {"expression": "2 + 3"}')
    open_story(ann)
    expect(panel(ann, "run.context")).to_contain_text("2 + 3")
    expect(panel(ann, "run.grant")).to_contain_text("calculate")
    for word in ("run.tokens", "run.cost", "run.model_calls"):
        expect(ann.page.locator(".figure", has_text=say[word]).locator("b")).not_to_be_empty()
    fits(ann)
    tool = only(ann, "tool").first
    tool.locator("summary").click()
    expect(tool.locator(".json")).to_contain_text("2 + 3")
    call = only(ann, "decision").filter(has_text="tools.call").first
    call.locator("summary").click()
    ann.page.get_by_role("button", name=f"{say['run.why']} tools.call").click()
    expect(call.locator(".why")).to_contain_text("calculate")
    fits(ann)


def test_what_a_run_left(reader: Reader) -> None:
    """Artifacts, state, what its process did, and the raw events one click away."""
    arrive, say = reader
    ann = arrive(agent="asker")
    ann.ask("keep")
    open_story(ann)
    for kind, word in (("artifact", "notes.txt"), ("state", "colour"), ("process", "")):
        entry = only(ann, kind).first
        entry.locator("summary").click()
        expect(entry.locator(".json")).not_to_be_empty()
        expect(entry).to_contain_text(word)
    fits(ann)
    ann.button("run.raw_show").click()
    expect(panel(ann, "run.raw")).to_contain_text('"type":"RUN_FINISHED"')
    fits(ann)
    assert say["run.raw"]


def test_a_run_is_watched(reader: Reader) -> None:
    arrive, say = reader
    ann = arrive(agent="slow")
    ann.write("count 5000 0.02")
    expect(ann.turns.first.locator(".markdown")).to_contain_text("3 ")
    run = ann.turns.first.get_attribute("data-turn")
    ann.page.goto(f"{ann.page.url.split('#')[0]}#/run/{run}")
    expect(ann.page.locator(".page-head")).to_contain_text(say["status.running"])
    fits(ann)
    ann.button("run.cancel").click()
    expect(ann.page.locator(".page-head")).to_contain_text(say["status.cancelled"])
    expect(ann.page.locator(".timeline > li", has_text="CANCEL").first).to_be_visible()
    fits(ann)


def test_two_runs_are_compared(reader: Reader) -> None:
    arrive, say = reader
    ann = arrive(agent="helper")
    ann.ask("hello")
    ann.ask("@echo hello")
    for turn in (0, 1):
        expect(ann.turns.nth(turn).get_by_role("link", name=say["chat.run"])).to_have_count(1)
    open_story(ann, 1)
    ann.page.locator("label", has_text=say["run.compare"]).locator("select").select_option(index=1)
    differs = ann.page.locator(".compare tr.differs", has_text=say["run.agent"])
    expect(differs.first).to_contain_text("helper")
    fits(ann)
