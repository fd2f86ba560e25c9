"""The pictures of the README, taken from the running product: `make screenshots`. No tests live here."""

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, expect, sync_playwright

from browser.conftest import a_host
from browser.people import Visitor


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
    for name, place in (("agent", "agents/helper"),):
        ann.page.goto(f"{url}/#/{place}")
        expect(ann.page.locator(".tile, .panel").nth(1)).to_be_visible()
        ann.page.wait_for_load_state("networkidle")
        ann.page.screenshot(path=folder / f"{name}.png")
    for section in ("usage", "audit"):
        ann.page.goto(f"{url}/#/operate/{section}")
        expect(ann.page.locator("tbody tr").first).to_be_visible()
        ann.page.screenshot(path=folder / f"{section}.png")
    ann.leave()
    phone = Visitor(browser, thread, width=360, height=740, device_scale_factor=2, color_scheme="dark", locale="zh-CN")
    expect(phone.turns.first).to_be_visible()
    phone.page.screenshot(path=folder / "phone-dark-chinese.png")
    phone.leave()


def main(folder: Path) -> None:
    chromium = shutil.which("chromium")
    assert chromium, "there is no Chromium here; `make browser` installs it"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        host = a_host(Path(place)).start()
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        try:
            take(browser, host.url, folder)
        finally:
            browser.close()
            host.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
