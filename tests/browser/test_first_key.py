"""The first key, made in the console where nobody needed one: shown until it is kept, and nobody is locked out."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from browser.conftest import a_host
from browser.people import DOT, Visitor
from walk.hosts import HostProcess

Visit = Callable[..., Visitor]
KEY = "pdk_"


@pytest.fixture
def keyless(tmp_path: Path, visit: Visit) -> Iterator[HostProcess]:
    """A host of this test alone, that has no key yet."""
    del visit  # the browser is there, or the test is not run
    host = a_host(tmp_path).start()
    yield host
    assert host.stop() == 0


def make_the_first_key(somebody: Visitor, user: str | None = None, choice: str | None = None) -> str:
    page = somebody.page
    page.goto(page.url.split("#")[0] + "#/operate/keys")
    form = page.locator("form", has=page.get_by_role("button", name="New key"))
    expect(form.get_by_label("Role")).to_have_value("admin")
    expect(form.get_by_label("Role")).to_be_disabled()
    expect(form.get_by_role("textbox", name="User")).to_have_value("dev")
    if user is not None:
        form.get_by_role("textbox", name="User").fill(user)
        form.get_by_role("button", name="New key").click()  # nothing is chosen for anybody: this does nothing yet
        expect(page.get_by_role("heading", name="This is your key")).to_have_count(0)
        form.get_by_role("radio", name=choice).check()
    form.get_by_role("button", name="New key").click()
    expect(page.get_by_role("heading", name="This is your key")).to_be_visible()
    key = page.locator("pre").inner_text().strip()
    assert key.startswith(KEY)
    return key


def test_the_first_key_is_shown_until_it_is_kept_and_the_tab_goes_on_with_all_that_was_said(
    keyless: HostProcess, visit: Visit
) -> None:
    dev = visit(f"{keyless.url}/")
    dev.forgiving = True  # what was under way without a key is refused, and the browser says so
    dev.ask("@echo before there was a key")
    key = make_the_first_key(dev)
    with keyless.client() as stranger:
        assert stranger.get("/api/v1/agents").status_code == 401
    expect(dev.page.get_by_text(key)).to_be_visible()
    dev.page.reload()
    expect(dev.page.get_by_text(key)).to_be_visible()
    dev.page.get_by_role("button", name="I have kept it, go on").click()
    expect(dev.page.get_by_role("heading", name="This is your key")).to_have_count(0)
    dev.page.get_by_role("link", name="before there was a key").first.click()
    expect(dev.page.locator(".markdown").last).to_contain_text("before there was a key")
    dev.page.reload()
    expect(dev.turns).to_have_count(1)
    dev.ask("@echo and afterwards")
    assert dev.page.evaluate(f"Object.values(sessionStorage).includes('{key}')")
    assert not dev.page.evaluate("'paddock.key.fresh' in sessionStorage")


def test_the_first_key_may_be_somebody_elses_who_begins_with_nothing(keyless: HostProcess, visit: Visit) -> None:
    dev = visit(f"{keyless.url}/")
    dev.forgiving = True
    dev.ask("@echo of dev")
    key = make_the_first_key(dev, "ann", "ann begins with nothing")
    dev.page.get_by_role("button", name="I have kept it, go on").click()
    expect(dev.page.get_by_role("link", name="of dev")).to_have_count(0)
    expect(dev.page.get_by_label("Role")).to_be_enabled()
    with keyless.client(headers={"Authorization": f"Bearer {key}"}) as ann:
        assert ann.get("/api/v1/users/me").json()["role"] == "admin"


def test_what_dev_said_is_taken_over_by_the_user_of_the_first_key(keyless: HostProcess, visit: Visit) -> None:
    # By the name of this machine, where the browser trusts nothing: the host lets nobody in there without a key, so the
    # form itself is on loopback, and the new user goes on at the other address.
    dev = visit(f"{keyless.url}/")
    dev.forgiving = True
    dev.page.locator("input[type=file]").set_input_files({"name": "dot.png", "mimeType": "image/png", "buffer": DOT})
    expect(dev.page.locator(".previews img")).to_have_count(1)
    dev.ask("@echo the walrus is dev's")
    dev.page.goto(f"{keyless.url}/#/?agent=slow")
    expect(dev.turns).to_have_count(0)
    dev.write("hang")
    expect(dev.button("chat.stop").first).to_be_visible()
    page = dev.page
    page.goto(page.url.split("#")[0] + "#/operate/keys")
    form = page.locator("form", has=page.get_by_role("button", name="New key"))
    form.get_by_role("textbox", name="User").fill("ann")
    take = form.get_by_role("radio", name="ann takes it over. Conversations of dev: 2; automations: 0")
    take.check()
    form.get_by_role("button", name="New key").click()
    expect(page.get_by_role("alert")).to_contain_text("something is going on in conversations of dev (1)")
    with keyless.client() as client:
        assert client.get("/api/v1/users/me").json()["userId"] == "dev", "no key was made"
        [run] = client.get("/api/v1/agent/runs", params={"status": "running"}).json()["runs"]
        client.post(f"/api/v1/agent/runs/{run['taskId']}/cancel")
        assert keyless.finished(run["taskId"])["status"] == "cancelled"
    expect(form.get_by_role("radio", name="ann takes it over. Conversations of dev: 1")).to_be_checked()
    form.get_by_role("button", name="New key").click()
    expect(page.get_by_role("heading", name="This is your key")).to_be_visible()
    key = page.locator("pre").inner_text().strip()
    page.get_by_role("button", name="I have kept it, go on").click()
    page.get_by_role("link", name="the walrus is dev's").first.click()
    expect(page.locator(".markdown").last).to_contain_text("the walrus is dev's")
    expect(dev.turns.first.locator("img")).to_have_count(1)

    ann = visit(f"http://console.test:{keyless.port}/")
    ann.forgiving = True  # the browser reports the 401 and the headers it leaves out on plain http
    assert not ann.page.evaluate("window.isSecureContext")
    ann.page.get_by_label("API key").fill(key)
    ann.page.get_by_label("API key").press("Enter")
    ann.page.get_by_role("link", name="the walrus is dev's").first.click()
    expect(ann.turns.first.locator("img")).to_have_count(1)
    ann.ask("@echo and it goes on")
    ann.page.goto(ann.page.url.split("#")[0] + "#/operate/keys")
    other = ann.page.locator("form", has=ann.page.get_by_role("button", name="New key"))
    other.get_by_role("textbox", name="User").fill("bob")
    other.get_by_role("button", name="New key").click()
    expect(ann.page.get_by_text("This is the key. It is shown once")).to_be_visible()
    assert ann.page.locator("pre").inner_text().strip().startswith(KEY)
