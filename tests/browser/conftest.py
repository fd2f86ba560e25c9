"""A real host with the console in it, and a real browser in front: Debian's Chromium, driven by Playwright."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from browser.people import PATIENCE_MS, Visitor, words
from browser.wide import LANGUAGES, SIZES, Reader
from model_server import ModelServer, model_server
from needs import not_run
from paddock.http_api.admin.console import ASSETS
from walk.hosts import NASTY, HostProcess

if TYPE_CHECKING:
    from playwright.sync_api import Browser

AGENTS = """\
default_agent: helper
agents:
  free: {runner: "plugin:paddock/local-agent/default", label: Free, config: {model: real}}
  helper: {runner: "plugin:paddock/local-agent/default", label: Helper, config: {model: demo}}
  careful: {runner: "plugin:paddock/local-agent/default", label: Careful, config: {model: demo, approve: ["calculate"]}}
  echo: {runner: "plugin:paddock/echo/default", label: Echo}
  secretary:
    {runner: "plugin:paddock/local-agent/default", label: Secretary, config: {model: demo}, tools: [calendar_write]}
  slow: {runner: "plugin:test/slow/default", label: Slow}
  asker: {runner: "plugin:test/asker/default", label: Asker, platform_actions: [message.edit]}
  painter: {runner: "plugin:paddock/local-agent/default", label: Painter, config: {model: demo}, tools: [paint, recite]}
tools: ["painting.py"]
"""
SECRET = "sixteen bytes and more"
CONFIG = """\
[platforms.chat]
secret = "env:CHAT_SECRET"
webhook = "{webhook}"
agent = "asker"
actions = ["message.edit"]
user = "dev"

[models.real]
provider = "openai"
base_url = "{model}"
key = "env:REAL_KEY"
retries = 0
"""
NOBODY = "http://127.0.0.1:9/nobody-listens"
ELSEWHERE = "console.test"
"""A name of this machine that no browser takes for this machine: what is there by plain http is no secure context."""
PLUGINS = (NASTY, Path(__file__).parent / "plugins")


@pytest.hookimpl(tryfirst=True)  # before the workers look for groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One worker has the browser: two would only take turns. A story has many waits, each with an end of its own."""
    for item in items:
        if "browser" in item.path.parts:
            item.add_marker(pytest.mark.xdist_group("browser"))
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(300))


class Gone(BaseHTTPRequestHandler):
    """A chat platform that takes nothing any more."""

    def do_POST(self) -> None:
        self.send_response(410)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def a_platform() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Gone) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/hook"
        server.shutdown()


def a_host(place: Path, webhook: str = NOBODY, model: str = NOBODY) -> HostProcess:
    """With agents that do and ask all there is to show, a chat platform, and a model that says what it is told to."""
    config = place / "paddock.toml"
    config.write_text(CONFIG.format(webhook=webhook, model=model))
    shutil.copy(Path(__file__).parent / "painting.py", place)
    env = {"PADDOCK_CONFIG": str(config), "CHAT_SECRET": SECRET, "REAL_KEY": "sk-none"}
    return HostProcess(place / "data", agents=AGENTS, plugins=PLUGINS, env=env)


class Stage:
    """One browser and few hosts for all stories that follow each other; they cost seconds to start.

    While Playwright is open it holds the event loop, and no other test of this process gets one: so it is closed as
    soon as the next test is no story.
    """

    def __init__(self) -> None:
        self._open = ExitStack()
        self._browser: Browser | None = None
        self._host: HostProcess | None = None
        self._locked: tuple[HostProcess, str] | None = None
        self._model: ModelServer | None = None

    @property
    def browser(self) -> "Browser":
        if self._browser is None:
            chromium = _chromium()
            from playwright.sync_api import expect, sync_playwright

            expect.set_options(timeout=PATIENCE_MS)
            playwright = self._open.enter_context(sync_playwright())
            args = ["--no-sandbox", f"--host-resolver-rules=MAP {ELSEWHERE} 127.0.0.1"]
            self._browser = playwright.chromium.launch(executable_path=chromium, args=args)
            self._open.callback(self._browser.close)
        return self._browser

    @property
    def host(self) -> HostProcess:
        if self._host is None:
            webhook = self._open.enter_context(a_platform())
            self._host = self._started(a_host(self._place(), webhook, self.model.url))
        return self._host

    @property
    def model(self) -> ModelServer:
        if self._model is None:
            self._model = self._open.enter_context(model_server())
        return self._model

    @property
    def locked(self) -> tuple[HostProcess, str]:
        if self._locked is None:
            host = self._started(a_host(self._place()))
            with host.client() as client:
                self._locked = (
                    host,
                    client.post("/api/v1/api-keys", json={"user": "ann", "role": "admin"}).json()["key"],
                )
        return self._locked

    def _place(self) -> Path:
        return Path(self._open.enter_context(TemporaryDirectory(prefix="console-")))

    def _started(self, host: HostProcess) -> HostProcess:
        self._open.callback(_stopped_well, host.start())
        return host

    def close(self) -> None:
        self._browser = self._host = self._locked = self._model = None
        self._open.close()


STAGE = Stage()


def _stopped_well(host: HostProcess) -> None:
    assert host.stop() == 0


def _chromium() -> str:
    chromium = shutil.which("chromium")
    if chromium is None:
        not_run("the stories of the web console, because there is no Chromium here; `make browser` installs it")
    if find_spec("playwright") is None:
        not_run("the stories of the web console, because Playwright is not installed")
    if not (ASSETS / "index.html").is_file():
        not_run("the stories of the web console, because it is not built; `make console` builds it, with Node.js")
    return chromium


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    if nextitem is None or "browser" not in nextitem.path.parts:
        STAGE.close()


@pytest.fixture
def browser() -> "Browser":
    return STAGE.browser


@pytest.fixture
def host(browser: "Browser") -> HostProcess:
    return STAGE.host


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


@pytest.fixture(params=[(size, locale) for size in SIZES for locale in LANGUAGES], ids="-".join)
def reader(request: pytest.FixtureRequest, visit: Callable[..., Visitor]) -> Reader:
    """Somebody at one of the two sizes, in one of the two languages."""
    size, locale = request.param
    width, height = SIZES[size]

    def arrive(url: str | None = None, **more: object) -> Visitor:
        return visit(url, width=width, height=height, locale=locale, bypass_csp=True, **more)

    return arrive, words(locale)


@pytest.fixture
def model(host: HostProcess) -> ModelServer:
    """What the agent called free hears."""
    assert host.url
    return STAGE.model


@pytest.fixture
def locked(browser: "Browser") -> tuple[HostProcess, str]:
    """A host that knows its callers by key."""
    return STAGE.locked
