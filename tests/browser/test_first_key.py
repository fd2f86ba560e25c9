"""The first key, made in the console where nobody needed one: shown until it is kept, and nobody is locked out."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from browser.conftest import a_host
from browser.people import Visitor
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


def make_the_first_key(somebody: Visitor, user: str | None = None) -> str:
    page = somebody.page
    page.goto(page.url.split("#")[0] + "#/operate/keys")
    form = page.locator("form", has=page.get_by_role("button", name="New key"))
    expect(form.get_by_label("Role")).to_have_value("admin")
    expect(form.get_by_label("Role")).to_be_disabled()
    expect(form.get_by_role("textbox", name="User")).to_have_value("dev")
    if user is not None:
        form.get_by_role("textbox", name="User").fill(user)
        expect(page.get_by_text("This user begins with nothing")).to_be_visible()
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
    dev.ask("@echo and afterwards")
    assert dev.page.evaluate(f"Object.values(sessionStorage).includes('{key}')")
    assert not dev.page.evaluate("'paddock.key.fresh' in sessionStorage")


def test_the_first_key_may_be_somebody_elses_who_begins_with_nothing(keyless: HostProcess, visit: Visit) -> None:
    dev = visit(f"{keyless.url}/")
    dev.forgiving = True
    dev.ask("@echo of dev")
    key = make_the_first_key(dev, "ann")
    dev.page.get_by_role("button", name="I have kept it, go on").click()
    expect(dev.page.get_by_role("link", name="of dev")).to_have_count(0)
    expect(dev.page.get_by_label("Role")).to_be_enabled()
    with keyless.client(headers={"Authorization": f"Bearer {key}"}) as ann:
        assert ann.get("/api/v1/users/me").json()["role"] == "admin"
