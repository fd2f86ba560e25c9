"""A real host with the console in it, and a real browser in front: Debian's Chromium, driven by Playwright."""

import shutil
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from browser.people import PATIENCE_MS, Visitor
from needs import not_run
from paddock.http_api.console import ASSETS
from walk.hosts import NASTY, HostProcess

if TYPE_CHECKING:
    from playwright.sync_api import Browser

AGENTS = """\
default_agent: helper
agents:
  helper: {runner: "plugin:paddock/local-agent/default", label: Helper, config: {model: demo}}
  careful: {runner: "plugin:paddock/local-agent/default", label: Careful, config: {model: demo, approve: ["calculate"]}}
  echo: {runner: "plugin:paddock/echo/default", label: Echo}
  slow: {runner: "plugin:test/slow/default", label: Slow}
  asker: {runner: "plugin:test/asker/default", label: Asker, platform_actions: [message.edit]}
"""
SECRET = "sixteen bytes and more"
CONFIG = """\
[platforms.chat]
secret = "env:CHAT_SECRET"
webhook = "http://127.0.0.1:9/nobody-listens"
agent = "asker"
actions = ["message.edit"]
user = "dev"
"""
PLUGINS = (NASTY, Path(__file__).parent / "plugins")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One worker has the browser: two would only take turns. A story has many waits, each with an end of its own."""
    for item in items:
        if "browser" in item.path.parts:
            item.add_marker(pytest.mark.xdist_group("browser"))
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(300))


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    """For one module: while Playwright is open it holds the event loop, and no other test of this process gets one."""
    chromium = shutil.which("chromium")
    if chromium is None:
        not_run("the stories of the web console, because there is no Chromium here; `make browser` installs it")
    if find_spec("playwright") is None:
        not_run("the stories of the web console, because Playwright is not installed")
    if not (ASSETS / "index.html").is_file():
        not_run("the stories of the web console, because it is not built; `make console` builds it, with Node.js")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


def a_host(place: Path) -> HostProcess:
    """With agents that do and ask all there is to show, and a chat platform that never answers."""
    config = place / "paddock.toml"
    config.write_text(CONFIG)
    env = {"PADDOCK_CONFIG": str(config), "CHAT_SECRET": SECRET}
    return HostProcess(place / "data", agents=AGENTS, plugins=PLUGINS, env=env)


@pytest.fixture(scope="module")
def host(browser: "Browser", tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostProcess]:
    host = a_host(tmp_path_factory.mktemp("console")).start()
    yield host
    assert host.stop() == 0


@pytest.fixture
def visit(browser: "Browser", host: HostProcess) -> Iterator[Callable[..., Visitor]]:
    """Somebody opens the console in a browser of their own."""
    visitors: list[Visitor] = []

    def arrive(
        url: str | None = None, *, agent: str = "", width: int = 1280, height: int = 800, **context: Any
    ) -> Visitor:
        start = url or host.url + (f"/#/?agent={agent}" if agent else "/")
        visitor = Visitor(browser, start, width=width, height=height, **context)
        visitors.append(visitor)
        return visitor

    yield arrive
    for visitor in visitors:
        visitor.leave()
