"""Debian's Chromium, driven by Playwright: one browser for a file of tests, a page that notes what must not happen."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

SWITCHES = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-component-update"),
    *("--disable-background-networking", "--disable-sync"),
)
PATIENCE = 60_000  # ms; no test is about how fast the machine is
CHANGED = "ERR_NETWORK_CHANGED"  # Chromium drops what it asks for when the machine gets another network interface
PICTURES = Path(os.environ.get("WARREN_TEST_PICTURES", ".make/console"))  # of every view, kept by the run


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser; skips with one line where it is missing."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("Debian's chromium is not installed: the console is not tested in a browser")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        pytest.skip("playwright is not installed: the console is not tested in a browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=[*SWITCHES])
        yield browser
        browser.close()


class Watched:
    """A page, and what it said and asked for that it should not have."""

    def __init__(self, page: Any, url: str) -> None:
        self.page = page
        self.url = url
        self.errors: list[str] = []
        self.elsewhere: list[str] = []
        self.dialogs: list[str] = []
        self.changes = 0  # of the machine's network, by tests beside this one
        page.set_default_timeout(PATIENCE)
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", self._asked)
        page.on("dialog", self._opened)

    def _said(self, message: Any) -> None:
        if CHANGED in message.text:
            self.changes += 1
        elif message.type in ("error", "warning"):
            self.errors.append(message.text)

    def _asked(self, request: Any) -> None:
        if (
            request.url.split(":")[0] not in ("blob", "data")
            and urlsplit(request.url).netloc != urlsplit(self.url).netloc
        ):
            self.elsewhere.append(request.url)

    def _opened(self, dialog: Any) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def go(self, place: str) -> None:
        """To a place of the console, and wait until its figures are there."""
        self._come(f"{self.url}/#/{place}", "main h1, main h2")
        self.page.wait_for_function("() => !document.querySelector('[aria-busy=true]')")

    def log_in(self, user: str = "guest", password: str = "guest") -> None:
        self._come(self.url, "#username")
        self.page.fill("#username", user)
        self.page.fill("#password", password)
        self.page.click("button:has-text('Log in')")

    def _come(self, url: str, sight: str) -> None:
        """To an address where this is seen; again, where another network kept it from coming."""
        until = time.monotonic() + PATIENCE / 1000
        while True:
            before = self.changes
            try:
                self.page.goto(url)
            except Exception as error:
                if CHANGED not in str(error):
                    raise
            while not (there := self.page.locator(sight).count() > 0) and self.changes == before:
                if time.monotonic() > until:
                    break
                self.page.wait_for_timeout(20)
            if there or time.monotonic() > until:
                break
            self.page.goto("about:blank")  # or only what is behind the # would be another
        self.page.wait_for_selector(sight)

    def click(self, text: str) -> None:
        self.page.click(f"main button:text-is('{text}')")

    def fill(self, **fields: str) -> None:
        for name, value in fields.items():
            self.page.fill(f"dialog [name={name}]", value)

    def fill_in(self, **fields: str) -> None:
        """On the page, outside of dialogs."""
        for name, value in fields.items():
            self.page.fill(f"main [name={name}]", value)

    def do(self, verb: str) -> None:
        """The last button of a dialog; it closes when that is done."""
        self.page.click(f"dialog button.main:text-is('{verb}')")
        self.page.wait_for_selector("dialog", state="detached")

    def confirms(self, name: str, verb: str) -> None:
        """What a dialog does only after its name was typed."""
        assert self.page.is_disabled("dialog button.main"), "not before the name is typed"
        self.fill(confirm=name)
        self.do(verb)

    def text(self) -> str:
        return str(self.page.inner_text("main"))

    def sees(self, text: str) -> None:
        """Waits until the page says so."""
        self.page.wait_for_function("text => document.body.innerText.includes(text)", arg=text)

    def picture(self, name: str) -> None:
        PICTURES.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=str(PICTURES / f"{name}.png"))
