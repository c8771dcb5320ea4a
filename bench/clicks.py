"""The console in a real Chromium on a loaded broker: how long until a list of ten thousand queues is painted, and how
long a click waits.

The load is that of ``consoles.py``. Painted is the browser's own word (first-contentful-paint) and, what somebody came
for, the first row; a click is answered when the row that it asked for is there. `measure` says what happened and judges
nothing: ``python -m bench.clicks`` prints it.
"""

from __future__ import annotations

import json
import statistics
import time
from typing import Any

import httpx
from tests.console.chromium import chromium

from bench import brokers
from bench.consoles import LOADED, QUEUES, load
from warrenmq.cli._api import Api

TIMES = 5
PAINTED = "performance.getEntriesByName('first-contentful-paint')[0].startTime"


def measure(count: int = QUEUES, times: int = TIMES) -> dict[str, Any]:
    """Medians and the longest, in ms."""
    with brokers.warren() as running:
        names = [*(f"q{n:05}" for n in range(count)), LOADED]
        declared = [{"name": n, "vhost": "/", "durable": False, "auto_delete": False, "arguments": {}} for n in names]
        Api(running.http, 600).checked("POST", "/definitions", {"queues": declared})
        with load(running.url), chromium() as browser:
            found = [_one(browser, httpx.URL(running.http), count) for _ in range(times)]
    return {
        what: {
            "median_ms": statistics.median(one[what] for one in found),
            "longest_ms": max(one[what] for one in found),
        }
        for what in found[0]
    }


def _one(browser: Any, url: httpx.URL, count: int) -> dict[str, float]:
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    page = context.new_page()
    where = str(url.copy_with(username=None, password=None)).rstrip("/")
    page.goto(where)
    page.fill("#username", url.username)
    page.fill("#password", url.password)
    page.click("button:has-text('Log in')")
    page.wait_for_selector("main h1")
    page.goto("about:blank")
    began = time.perf_counter()
    page.goto(f"{where}/#/queues?sort=name")
    page.wait_for_selector("td:has-text('q00000')")
    found = {"first row": (time.perf_counter() - began) * 1000, "first paint": float(page.evaluate(PAINTED))}
    for what, selector, then in (
        ("next page", "nav button:text-is('Next')", "q00049"),  # one row is the loaded queue's
        ("sorted", "th button:has-text('name')", f"q{count - 1:05}"),
        ("a queue", f"td a:text-is('q{count - 1:05}')", ""),
    ):
        found[what] = float(page.evaluate(CLICKED, [page.wait_for_selector(selector), then]))
    context.close()
    return found


CLICKED = """([button, text]) => new Promise(done => {
  const began = performance.now();
  const rows = () => [...document.querySelectorAll('td')];
  const there = () => text ? rows().some(one => one.innerText === text) : document.querySelector('nav.tabs');
  const look = () => there() ? done(performance.now() - began) : requestAnimationFrame(look);
  button.click();
  look();
})"""


if __name__ == "__main__":
    print(json.dumps(measure(), indent=2))
