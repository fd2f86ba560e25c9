"""Somebody at the console: what they see and what they do, in few words. Complains of everything a page must not do."""

import base64
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Locator, Request, expect

PATIENCE_MS = 30_000
"""How long a sight or a click is waited for: a slow machine is no failure, and a quick one never waits this long."""
DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEUlEQVR4nGNQaEjAihiGlgQA8jBAAbIO7xUAAAAASUVORK5CYII="
)
"""A picture of eight by eight points."""
EXPECTED = ("net::ERR_ABORTED", "net::ERR_INTERNET_DISCONNECTED", "net::ERR_CONNECTION_REFUSED")


PAINT = """() => new Promise((resolve) => new PerformanceObserver((list) => {
  const first = list.getEntriesByName('first-contentful-paint')[0];
  if (first) resolve(first.startTime);
}).observe({ type: 'paint', buffered: true }))"""


@cache
def words(locale: str) -> Mapping[str, str]:
    """The sentences of the page in this language, from its own table."""
    table = (Path(__file__).parents[2] / f"console/src/words/{'zh' if locale == 'zh-CN' else 'en'}.ts").read_text()
    pairs = (line.strip().removesuffix(",").partition(": ") for line in table.splitlines() if line.startswith('  "'))
    return {key.strip('"'): value.strip('"') for key, _, value in pairs}


class Visitor:
    def __init__(self, browser: Browser, url: str, *, width: int, height: int, **context: Any) -> None:
        self.url = url
        self.narrow = width < 600
        self.say = words(context.get("locale", "en-GB"))
        self.context = browser.new_context(viewport={"width": width, "height": height}, **context)
        self.context.set_default_timeout(PATIENCE_MS)
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.forgiving = False
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        self.page.on("request", self._asked)
        self.page.goto(url)

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not any(word in message.text for word in EXPECTED):
            self.complaints.append(f"{message.type}: {message.text}")

    def _asked(self, request: Request) -> None:
        """No request leaves the host."""
        there, here = urlsplit(request.url), urlsplit(self.url)
        if there.scheme != "blob" and there.netloc != here.netloc:
            self.complaints.append(f"a request left the host: {request.url}")

    def leave(self) -> None:
        self.context.close()
        assert self.forgiving or self.complaints == []

    # --- what they do

    def write(self, text: str) -> None:
        self.box.fill(text)
        self.box.press("Enter")

    def ask(self, text: str) -> Locator:
        """Say something and wait for the end of its turn."""
        before = self.turns.count()
        self.write(text)
        expect(self.turns).to_have_count(before + 1)
        turn = self.turns.nth(before)
        expect(turn.locator(".turn-footer")).to_have_count(1)
        return turn

    def begin_anew(self) -> None:
        """Into a conversation in which nobody has said anything: the one before is out of sight."""
        self.page.locator(".threads > a.button").click()
        expect(self.turns).to_have_count(0)

    @property
    def box(self) -> Locator:
        return self.page.get_by_label(self.say["chat.write"], exact=True)

    def button(self, word: str, within: Locator | None = None, **filled: str) -> Locator:
        """A button by its key in the table of words."""
        return (within or self.page).get_by_role("button", name=self.say[word].format(**filled), exact=True)

    @property
    def turns(self) -> Locator:
        return self.page.locator("article.turn[data-turn]")

    def sees(self, text: str) -> Locator:
        found = self.page.get_by_text(text, exact=False).first
        expect(found).to_be_visible()
        return found

    def first_paint(self) -> float:
        """When the first words were on the page, in milliseconds after it was asked for."""
        return self.page.evaluate(PAINT)
