"""What waits for a person's word, answered where it stands: questions, permissions, calls of the page's own, cards."""

import json
import uuid
from collections.abc import Callable

from playwright.sync_api import expect

from browser.people import Visitor
from browser.platform import the_platform_says
from walk.hosts import HostProcess

Visit = Callable[..., Visitor]
PICK = {
    "name": "pick_colour",
    "description": "Lets the person pick a colour",
    "parameters": {"type": "object", "properties": {"question": {"type": "string"}}},
}


def test_a_call_that_needs_a_yes_gets_it_by_one_click_and_a_no_as_well(visit: Visit) -> None:
    ann = visit(agent="careful")
    for place, (word, outcome) in enumerate((("Yes", "42"), ("No", "did not approve"))):
        ann.ask('call calculate {"expression": "6 * 7"}')
        expect(ann.page.get_by_role("button", name="Yes")).to_have_count(1)  # the agent's own buttons stay away
        question = ann.page.get_by_role("region", name="Careful has a question")
        question.get_by_role("button", name=word).click()
        expect(ann.turns).to_have_count(2 * place + 2)
        expect(ann.turns.nth(2 * place + 1).locator(".turn-footer")).to_have_count(1)
        expect(ann.turns.nth(2 * place + 1)).to_contain_text(outcome)
        expect(question).to_have_count(0)
    expect(ann.turns.nth(1).locator(".tool summary")).to_contain_text("calculate")


def test_several_questions_are_answered_together_after_a_reload_too(visit: Visit) -> None:
    ann = visit(agent="asker")
    ann.ask("ask")
    ann.page.reload()
    box = ann.page.get_by_role("region", name="Asker has a question")
    send = box.get_by_role("button", name="Send the answers")
    expect(send).to_be_disabled()
    box.get_by_role("button", name="Yes").click()
    box.get_by_label("Row").fill("7")
    box.get_by_label("Side").select_option("left")
    box.get_by_role("button", name="Answer", exact=True).click()
    send.click()
    expect(ann.turns.nth(1)).to_contain_text('Told: {"seat": {"row": 7, "side": "left"}, "sure": {"approved": true}}')
    expect(box).to_have_count(0)


def test_a_permission_that_a_run_asked_for_is_given_in_the_conversation(visit: Visit, host: HostProcess) -> None:
    ann = visit(f"{host.url}/#/t/{the_platform_says(host, 'permission')}")
    box = ann.page.get_by_role("region", name="Asker has a question")
    expect(box).to_contain_text("message.edit")
    expect(box.locator(".json")).to_contain_text("better")
    box.get_by_role("button", name="Do not allow").click()
    expect(ann.turns.nth(1)).to_contain_text('"approved": false')
    expect(box).to_have_count(0)
    ann.page.get_by_role("link", name="Operate").click()
    ann.page.get_by_role("link", name="Approvals waiting").click()
    expect(ann.page.get_by_text("Nothing waits for a decision.")).to_be_visible()


def test_a_call_of_the_front_end_is_answered_by_the_page(visit: Visit, host: HostProcess) -> None:
    thread = str(uuid.uuid4())
    asked = {"id": "u1", "role": "user", "content": 'call pick_colour {"question": "Which one?"}'}
    body = {"threadId": thread, "runId": "first", "protocolVersion": "1.0", "messages": [asked], "tools": [PICK]}
    with host.client() as client:
        assert client.post("/api/v1/agent/ag-ui/helper", json=body).status_code == 200
    ann = visit(f"{host.url}/#/t/{thread}")
    box = ann.page.get_by_role("region", name="Helper has a question")
    expect(box).to_contain_text("Which one?")
    box.get_by_label("asked this page to use pick_colour").fill("green")
    box.get_by_label("asked this page to use pick_colour").press("Enter")
    expect(ann.turns.nth(1).locator(".markdown")).to_contain_text("pick_colour: green")
    expect(box).to_have_count(0)


def test_buttons_and_forms_of_a_card_say_what_they_stand_for_once(visit: Visit, host: HostProcess) -> None:
    ann = visit(agent="asker")
    card = ann.ask("card").get_by_role("region", name="made by the agent")
    card.get_by_role("button", name="Tea").click()
    expect(ann.turns.nth(1).locator(".bubble")).to_contain_text("tea it is")
    expect(ann.turns.nth(1).locator(".markdown")).to_contain_text("Heard: tea it is")
    ann.page.reload()
    card.get_by_label("Colour").select_option("green")
    card.get_by_label("How many").fill("3")
    card.get_by_role("button", name="Order").click()
    expect(ann.turns.nth(2).locator(".bubble")).to_contain_text("green")
    expect(ann.turns).to_have_count(3)
    thread = ann.page.url.rpartition("/")[2]
    with host.client() as client:
        said = client.get(f"/api/v1/agent/history?threadId={thread}").json()["messages"]
    assert [one["content"] for one in said if one["role"] == "user"][:2] == ["card", "tea it is"], json.dumps(said)
