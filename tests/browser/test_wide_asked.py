"""The wide set: what waits for a person's word, at both sizes and in both languages."""

import uuid

import pytest
from playwright.sync_api import Locator, expect

from browser.people import Visitor
from browser.platform import the_platform_says
from browser.test_questions import PICK
from browser.wide import Reader, fits
from walk.hosts import HostProcess

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


def question_of(ann: Visitor, agent: str) -> Locator:
    return ann.page.get_by_role("region", name=ann.say["question.title"].format(agent=agent))


def test_a_call_waits_for_a_yes(reader: Reader) -> None:
    arrive, _ = reader
    ann = arrive(agent="careful")
    for place, (word, outcome) in enumerate((("question.yes", "42"), ("question.no", "did not approve"))):
        ann.ask('call calculate {"expression": "6 * 7"}')
        expect(question_of(ann, "Careful")).to_be_visible()
        fits(ann)
        ann.button(word, question_of(ann, "Careful")).click()
        expect(ann.turns).to_have_count(2 * place + 2)
        expect(ann.turns.nth(2 * place + 1)).to_contain_text(outcome)
        expect(question_of(ann, "Careful")).to_have_count(0)


def test_several_questions(reader: Reader) -> None:
    arrive, _ = reader
    ann = arrive(agent="asker")
    ann.ask("ask")
    ann.page.reload()
    asked = question_of(ann, "Asker")
    ann.button("question.yes", asked).click()
    asked.get_by_label("Row").fill("7")
    asked.get_by_label("Side").select_option("left")
    ann.button("question.answer", asked).click()
    fits(ann)
    ann.button("question.send", asked).click()
    expect(ann.turns.nth(1)).to_contain_text('"row": 7')
    expect(asked).to_have_count(0)


def test_a_permission(reader: Reader, host: HostProcess) -> None:
    arrive, _ = reader
    ann = arrive(f"{host.url}/#/t/{the_platform_says(host, 'permission')}")
    asked = question_of(ann, "Asker")
    expect(asked).to_contain_text("message.edit")
    fits(ann)
    ann.button("approval.grant", asked).click()
    expect(ann.turns.nth(1)).to_contain_text('"approved": true')
    expect(asked).to_have_count(0)


def test_a_tool_of_the_page(reader: Reader, host: HostProcess) -> None:
    arrive, say = reader
    thread = str(uuid.uuid4())
    said = {"id": "u1", "role": "user", "content": 'call pick_colour {"question": "Which one?"}'}
    body = {"threadId": thread, "runId": "first", "protocolVersion": "1.0", "messages": [said], "tools": [PICK]}
    with host.client() as client:
        assert client.post("/api/v1/agent/ag-ui/helper", json=body).status_code == 200
    ann = arrive(f"{host.url}/#/t/{thread}")
    asked = question_of(ann, "Helper")
    expect(asked).to_contain_text("Which one?")
    fits(ann)
    field = asked.get_by_label(say["question.tool"].format(agent="Helper", tool="pick_colour"))
    field.fill("green")
    field.press("Enter")
    expect(ann.turns.nth(1).locator(".markdown")).to_contain_text("pick_colour: green")
    expect(asked).to_have_count(0)


def test_cards_are_used(reader: Reader) -> None:
    arrive, say = reader
    ann = arrive(agent="asker")
    card = ann.ask("card").get_by_role("region", name=say["chat.made_by_agent"])
    fits(ann)
    card.get_by_role("button", name="Tea").click()
    expect(ann.turns.nth(1).locator(".markdown")).to_contain_text("Heard: tea it is")
    ann.page.reload()
    card.get_by_label("Colour").select_option("green")
    card.get_by_label("How many").fill("3")
    card.get_by_role("button", name="Order").click()
    expect(ann.turns.nth(2).locator(".bubble")).to_contain_text("green")
    expect(ann.turns).to_have_count(3)
    fits(ann)
