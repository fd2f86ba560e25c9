"""The pictures of the README and the guides, taken from the running product: `make screenshots`. No tests live here."""

import io
import re
import shutil
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright

from browser.conftest import a_host, a_platform
from browser.people import PATIENCE_MS, Visitor

COLOURS = 96
"""Of the film: few, because it is flat colour and it is loaded by everybody who reads the README."""


@dataclass
class Film:
    """Pictures of a page, one after the other, each shown for a while."""

    page: Page
    frames: list[tuple[Image.Image, int]] = field(default_factory=list)

    def show(self, milliseconds: int) -> None:
        self.frames.append((Image.open(io.BytesIO(self.page.screenshot())).convert("RGB"), milliseconds))

    def type(self, text: str) -> None:
        """As somebody types: every few letters."""
        box = self.page.get_by_label("Message", exact=True)
        for end in range(0, len(text), 6):
            box.fill(text[: end + 6])
            self.show(110)
        self.show(500)
        box.press("Enter")

    def save(self, path: Path) -> None:
        sheet = self.frames[-1][0].quantize(COLOURS)
        drawn = [image.quantize(COLOURS, palette=sheet, dither=Image.Dither.NONE) for image, _ in self.frames]
        durations = [shown for _, shown in self.frames]
        drawn[0].save(path, save_all=True, append_images=drawn[1:], duration=durations, loop=0, optimize=True)


def film(browser: Browser, url: str, folder: Path) -> None:
    """From the first visit to why a run was allowed what it did, in half a minute."""
    ann = Visitor(browser, f"{url}/#/?agent=careful", width=960, height=600)
    expect(ann.page.locator(".hello")).to_be_visible()
    expect(ann.page.get_by_label("Message", exact=True)).to_have_attribute("placeholder", re.compile("Careful"))
    told = Film(ann.page)
    told.show(1_500)
    told.type("calculate 19 * 23")
    question = ann.page.get_by_role("region", name="Careful has a question")
    expect(question).to_be_visible()
    told.show(2_200)
    question.get_by_role("button", name="Yes").click()
    expect(ann.turns.nth(1).locator(".turn-footer")).to_have_count(1)
    told.show(2_000)
    told.type("@helper what time is it in Asia/Shanghai")
    expect(ann.turns.nth(2).locator(".turn-footer")).to_have_count(1)
    told.show(1_600)
    ann.turns.nth(2).locator(".tool summary").click()
    told.show(1_800)
    ann.turns.nth(2).get_by_role("link", name="How this came about").click()
    expect(ann.page.locator(".timeline > li").first).to_be_attached()
    told.show(2_000)
    ann.page.get_by_role("heading", name="What happened").scroll_into_view_if_needed()
    ann.page.locator(".timeline").scroll_into_view_if_needed()
    call = ann.page.locator(".timeline > li", has_text="tools.call").first
    call.locator("summary").click()
    call.get_by_role("button", name="Why?").click()
    expect(call.locator(".why")).to_contain_text("current_time")
    call.scroll_into_view_if_needed()
    told.show(3_500)
    told.save(folder / "console.gif")
    ann.leave()


def take(browser: Browser, url: str, folder: Path) -> None:
    ann = Visitor(browser, f"{url}/#/?agent=helper", width=1280, height=800, device_scale_factor=1.5)
    ann.ask("what time is it in Asia/Shanghai")
    ann.ask("calculate 19 * 23").locator(".tool summary").click()
    ann.ask("@echo Thanks, **both** of you!")
    thread = ann.page.url
    ann.page.screenshot(path=folder / "chat.png")
    link = ann.turns.nth(1).locator("a[href^='#/run/']").get_attribute("href")
    ann.page.goto(f"{url}/{link}")
    expect(ann.page.locator(".timeline > li").first).to_be_visible()
    ann.page.screenshot(path=folder / "run.png")
    ann.page.goto(f"{url}/#/agents/helper")
    expect(ann.page.locator(".panel").nth(1)).to_contain_text("models.invoke")
    ann.page.screenshot(path=folder / "agent.png")
    for section in ("usage", "audit"):
        ann.page.goto(f"{url}/#/operate/{section}")
        expect(ann.page.locator("tbody tr").first).to_be_visible()
        ann.page.screenshot(path=folder / f"{section}.png")
    ann.leave()
    phone = Visitor(browser, thread, width=360, height=740, device_scale_factor=2, color_scheme="dark", locale="zh-CN")
    expect(phone.turns.first).to_be_visible()
    phone.page.screenshot(path=folder / "phone-dark-chinese.png")
    phone.leave()


@contextmanager
def stage() -> Generator[tuple[Browser, str]]:
    chromium = shutil.which("chromium")
    assert chromium, "there is no Chromium here; `make browser` installs it"
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright, a_platform() as webhook:
        expect.set_options(timeout=PATIENCE_MS)
        host = a_host(Path(place), webhook).start()
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        try:
            yield browser, host.url
        finally:
            browser.close()
            host.stop()


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with stage() as (browser, url):
        film(browser, url, folder)
        take(browser, url, folder)
    for picture in folder.glob("*.png"):
        Image.open(picture).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(picture, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
