"""Operation, as people do it: watch, stop, decide, schedule, fill, look up."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Locator, expect

import loopback
from browser.people import Visitor
from browser.platform import the_platform_says
from walk.hosts import HostProcess

Visit = Callable[..., Visitor]


def listed(ann: Visitor, name: str) -> Locator:
    return ann.page.locator(".panel", has=ann.page.get_by_role("heading", name=name, exact=True))


def operate(visit: Visit, host: HostProcess, section: str) -> Visitor:
    return visit(f"{host.url}/#/operate/{section}")


def test_a_run_can_be_watched_and_stopped_from_operation(visit: Visit) -> None:
    ann = visit(agent="slow")
    ann.write("count 5000 0.02")
    expect(ann.turns.first.locator(".markdown")).to_contain_text("3 ")
    run = ann.turns.first.get_attribute("data-turn")
    ann.page.get_by_role("link", name="Operate").click()
    flying, ended = (
        listed(ann, name).locator(f"tr:has(a[href$='{run}'])") for name in ("Runs in flight", "Latest runs")
    )
    expect(flying).to_contain_text("running")
    flying.get_by_role("button", name="Stop").click()
    expect(flying).to_have_count(0)
    expect(ended).to_contain_text("cancelled")


def test_every_part_of_operation_opens_and_has_something_to_say(visit: Visit) -> None:
    ann = visit()
    for section in (
        "live",
        "approvals",
        "usage",
        "audit",
        "keys",
        "knowledge",
        "automations",
        "calendar",
        "deliveries",
    ):
        ann.page.goto(ann.page.url.split("#")[0] + f"#/operate/{section}")
        expect(ann.page.locator(".panel").first).to_be_visible()
        expect(ann.page.get_by_text("Loading…")).to_have_count(0)
        expect(ann.page.get_by_role("alert")).to_have_count(0)


def test_a_decision_about_something_with_a_long_name_shows_its_result_beside_it(
    visit: Visit, host: HostProcess
) -> None:
    with host.client() as client:
        client.put(f"/api/v1/agents/{'long' * 15}", json={"runner": "plugin:paddock/echo/default"})
        client.delete(f"/api/v1/agents/{'long' * 15}")
    ann = operate(visit, host, "audit")
    row = ann.page.locator(".listing tr", has_text="long" * 15).first
    expect(row.locator(".badge")).to_be_in_viewport(ratio=1)


def test_an_administrator_stops_somebody_elses_run(visit: Visit, locked: tuple[HostProcess, str]) -> None:
    host, key = locked
    ann = visit(f"{host.url}/#/operate/live")
    ann.forgiving = True  # the browser reports the first 401
    admin = {"Authorization": f"Bearer {key}"}
    made = loopback.post(f"{host.url}/api/v1/api-keys", json={"user": "bob", "role": "user"}, headers=admin).json()
    body = {"threadId": None, "runId": "r", "messages": [{"id": "m", "role": "user", "content": "count 5000 0.02"}]}
    body |= {"threadId": "0f6d3a54-7a2f-4a0e-9d4b-4a1d2c3b4a5d", "forwardedProps": {"runtime_mode": "chat"}}
    bob = {"Authorization": f"Bearer {made['key']}"}
    run = loopback.post(f"{host.url}/api/v1/agent/runs?agent=slow", json=body, headers=bob).json()["taskId"]
    ann.page.get_by_label("API key").fill(key)
    ann.page.get_by_label("API key").press("Enter")
    row = listed(ann, "Runs in flight").locator(f"tr:has(a[href$='{run}'])")
    expect(row).to_contain_text("bob")
    row.get_by_role("button", name="Stop").click()
    expect(listed(ann, "Latest runs").locator(f"tr:has(a[href$='{run}'])")).to_contain_text("cancelled")


def test_an_automation_is_made_shows_its_next_times_runs_now_rests_and_goes(visit: Visit, host: HostProcess) -> None:
    ann = operate(visit, host, "automations")
    ann.page.get_by_text("New automation").click()
    ann.page.get_by_label("Name").fill("Morning")
    ann.page.get_by_label("What is asked").fill("hello")
    ann.page.get_by_label("Agent").select_option("echo")
    ann.page.get_by_role("button", name="Save").click()
    row = listed(ann, "Automations").locator("tbody tr", has_text="Morning")
    expect(row.locator(".times li")).to_have_count(3)
    row.get_by_role("button", name="Run now").click()
    expect(ann.page.get_by_role("link", name="See the run")).to_be_visible()
    row.get_by_role("button", name="Pause").click()
    expect(row).to_contain_text("paused")
    row.get_by_role("button", name="Delete").click()
    ann.page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(row).to_have_count(0)
    ann.page.get_by_role("link", name="See the run").click()
    expect(ann.page.get_by_role("heading", name="What happened")).to_be_visible()


def test_what_an_agent_puts_into_the_calendar_is_on_its_page(visit: Visit, host: HostProcess) -> None:
    soon = (datetime.now(UTC) + timedelta(days=2)).strftime("%Y-%m-%d")
    event = f'"title": "Stand-up", "start": "{soon}T09:00", "end": "{soon}T09:15", "event_timezone": "UTC"'
    ann = visit(agent="secretary", timezone_id="UTC")
    ann.ask(f'call calendar_write {{"action": "create", {event}}}')
    ann.page.goto(f"{host.url}/#/operate/calendar")
    line = listed(ann, "Calendar").get_by_role("listitem").filter(has_text="Stand-up")
    expect(line).to_contain_text(re.compile("09:00 AM – 09:15 AM|09:00 – 09:15"))
    with ann.page.expect_download() as taken:
        ann.page.get_by_role("button", name="Take it along").click()
    assert "Stand-up" in taken.value.path().read_text()


def test_deliveries_are_listed_with_what_became_of_them_and_sent_once_more(visit: Visit, host: HostProcess) -> None:
    the_platform_says(host, "hello from elsewhere")
    ann = operate(visit, host, "deliveries")
    row = listed(ann, "Deliveries").locator("tbody tr").first
    expect(row).to_contain_text("message.completed")
    expect(row).to_contain_text("given up")
    with ann.page.expect_response("**/redeliver") as answer:
        row.get_by_role("button", name="Deliver again").click()
    assert answer.value.status == 202
    expect(row.get_by_role("button", name="Deliver again")).to_be_enabled()  # taken up, and given up again
    expect(ann.page.get_by_role("alert")).to_have_count(0)
    ann.page.get_by_role("button", name="delivered").click()
    expect(ann.page.get_by_text("Nothing was delivered")).to_be_visible()


def test_a_document_goes_into_a_base_and_its_way_is_seen(visit: Visit, host: HostProcess) -> None:
    ann = operate(visit, host, "knowledge")
    ann.page.get_by_label("Name").fill("handbook")
    ann.page.get_by_role("button", name="New base").click()
    tile = ann.page.locator(".tile", has_text="handbook")
    tile.locator("input[type=file]").set_input_files(
        {"name": "tea.txt", "mimeType": "text/plain", "buffer": b"Oolong is a tea. " * 200}
    )
    expect(tile.get_by_role("status")).to_contain_text("completed")
    expect(tile.locator(".document")).to_have_text("tea.txt")
    tile.get_by_role("button", name="Remove tea.txt").click()
    expect(tile.locator(".document")).to_have_count(0)


WATCH = """(tile) => {
  window.seen = new Set();
  const look = () => {
    const bar = tile.querySelector('progress[value]');
    if (bar && bar.value > 0 && bar.value < bar.max) window.seen.add(bar.value);
  };
  new MutationObserver(look).observe(tile, { subtree: true, childList: true, attributes: true });
}"""


@pytest.mark.long
def test_a_long_way_in_is_seen_to_move_also_after_a_reload_and_by_somebody_else(
    visit: Visit, host: HostProcess
) -> None:
    ann = operate(visit, host, "knowledge")
    ann.page.get_by_label("Name").fill("library")
    ann.page.get_by_role("button", name="New base").click()
    book = "".join(f"Chapter {number}. The river had {number} bends.\n\n" * 8 for number in range(45_000)).encode()
    tile = ann.page.locator(".tile", has_text="library")
    tile.locator("input[type=file]").set_input_files({"name": "b.txt", "mimeType": "text/plain", "buffer": book})
    expect(tile.locator("progress[value]")).to_be_visible()
    ann.page.reload()
    for person in (ann, operate(visit, host, "knowledge")):
        mine = person.page.locator(".tile", has_text="library")
        expect(mine.locator("progress[value]")).to_be_visible()
        mine.evaluate(WATCH)
        person.page.wait_for_function("() => window.seen.size >= 3")
    expect(tile.get_by_role("status")).to_contain_text("completed", timeout=300_000)
    expect(tile.locator(".document")).to_have_text("b.txt")
