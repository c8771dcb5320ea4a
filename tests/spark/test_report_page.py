"""The page of a report: one file that needs nothing else, whatever names clients chose."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from math import sin
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow")

from warrenmq.spark.reporting.drawing import WIDE, bands, runs
from warrenmq.spark.reporting.facts import Band, Facts
from warrenmq.spark.reporting.page import page
from warrenmq.spark.reporting.picture import write_picture
from warrenmq.spark.reporting.sheets import write_sheets

START = datetime(2026, 11, 16, 12, tzinfo=UTC)
EVIL = "<script>alert('1')</script>&\"x"


def message(**more: Any) -> dict[str, Any]:
    return {"log": "a", "record": 1 << 32, "id": 1099511627777, "message_id": EVIL, "queue": EVIL, **more}


def facts(**more: Any) -> Facts:
    """A day of a shop, with something of everything."""
    windows = [START + timedelta(minutes=n) for n in range(60)]
    waves = [int(1000 + 400 * sin(n / 6)) for n in range(60)]
    rates = [
        (at, {"published": n, "delivered": n - 20, "consumed": n - 30, "gone": n // 90, "unroutable": n // 60})
        for at, n in zip(windows, waves, strict=True)
    ]
    points = [(at, n / 400_000, n / 150_000, n / 50_000) for at, n in zip(windows, waves, strict=True)]
    found: dict[str, Any] = {
        "rates": rates,
        "bands": [Band("publish→deliver, work", 60_000, points), Band("deliver→ack, work", 59_000, points)],
        "publishes": {"confirmed": 58_120, "unconfirmed": 12, "unroutable": 340, "returned": 17},
        "outcomes": {"acked": 56_800, "waiting": 1100, "expired_dead_lettered": 140, "limit_gone": 92},
        "queues": [("work", {"acked": 50_000, "waiting": 1000}), (EVIL, {"acked": 6800, "limit_gone": 92})],
        "holes": [],
        "unaccounted": [],
        "worst": {
            "missing": [],
            "slowest": [message(outcome="acked", seconds=4000.5)],
            "redelivered": [message(delivered=9, outcome="waiting", last_delivered=START)],
            "unroutable": [
                {
                    "user": EVIL,
                    "exchange": "",
                    "routing_key": EVIL,
                    "publisher": "returned",
                    "messages": 17,
                    "last": START,
                    "id": 7,
                    "message_id": None,
                }
            ],
            "dead_lettered": [
                message(cause="expired", messages=140, dead_lettered=140, gone=0, letters_lost=0),
                message(id=None, message_id=None, cause="limit", messages=9, dead_lettered=9, gone=0, letters_lost=0),
            ],
            "backlog": [message(queue="work", waiting=1000, held=0, oldest_seconds=0.25)],
            "doubled": [message(what="left twice", times=2)],
        },
    }
    return Facts(**{**found, **more})


class Reader(HTMLParser):
    """Is every element closed, and what is fetched from elsewhere?"""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    assert reader.open == []
    return reader


def test_the_page_needs_nothing_else() -> None:
    text = page(facts())
    tags = read(text).tags
    assert not tags & {"script", "link", "img", "iframe", "object"} and "svg" in tags
    assert "http" not in text and "url(" not in text and "@import" not in text
    assert "prefers-color-scheme:dark" in text


def test_names_that_clients_chose_are_text() -> None:
    text = page(facts(), title=EVIL)
    assert "<script" not in text and read(text).text.count(EVIL) >= 7


def test_the_sums_close() -> None:
    shown = read(page(facts())).text
    sums = re.findall(r"([\d,]+) = ((?:[\d,]+ [a-z ]+?(?: \+ |(?=[A-Z])))+)", shown)
    assert len(sums) == 2
    for total, terms in sums:
        parts = [int(part.replace(",", "")) for part in re.findall(r"[\d,]+", terms)]
        assert int(total.replace(",", "")) == sum(parts) and len(parts) == 4


def test_only_all_of_them_are_a_hundred_per_cent() -> None:
    for waiting, share in ((1, "99.9%"), (0, "100.0%")):
        shown = page(facts(outcomes={"acked": 1_000_000, "waiting": waiting}))
        assert f"<b>{share}</b>consumed" in shown


def test_what_is_missing_stands_first_and_messages_are_linked() -> None:
    hole = {"because": "file missing", "says": "log aa: segment 3"}
    wrong = [
        {"what": "no beginning", "because": "file missing", "messages": 7},
        {"what": "end unknown", "because": "gap", "messages": 5},
    ]
    text = page(facts(holes=[hole], unaccounted=wrong), broker="http://localhost:15672/")
    shown = read(text).text
    assert "7 messages are missing." in shown and "no file tells of log aa: segment 3" in shown
    assert "end unknown" not in shown and "Nothing is missing" not in shown
    assert 'href="http://localhost:15672/#/where?id=1099511627777"' in text
    assert 'href="http://localhost:15672/#/where?id=7"' in text and f"<td>{1 << 32}</td>" in text
    assert "Nothing is missing." in read(page(facts())).text and "warren where 1099511627777" in page(facts())


def test_an_audit_of_next_to_nothing_is_a_page_too() -> None:
    one = [(START, {"published": 1})]
    read(page(facts(rates=one, bands=[Band("publish→confirm", 1, [(START, 0.0, 0.0, 0.0)])])))
    read(page(Facts([], [], {}, {}, [], [], [])))


def test_time_goes_on_where_nothing_was() -> None:
    minutes = [START + timedelta(minutes=n) for n in (0, 1, 2, 10, 20)]
    assert [round(x - 56) for x in WIDE.xs(minutes)] == [0, 40, 79, 396, 792]
    assert runs(minutes, 60) == [[0, 1, 2], [3], [4]]
    drawn = bands([(at, 0.1, 0.2, 0.4) for at in minutes], 60)
    assert drawn.count("line c0") == 3 and drawn.count("band far") == 3


def test_what_the_page_shows_can_be_had_as_csv(tmp_path: Path) -> None:
    some = facts(queues=[("=1+cmd|' /C calc'!A0", {"acked": 3})])
    write_sheets(some, tmp_path)
    assert (tmp_path / "publishes.csv").read_text().splitlines()[:2] == ["outcome,messages", "confirmed,58120"]
    rates = (tmp_path / "rates.csv").read_text().splitlines()
    assert len(rates) == 61 and rates[1].startswith("2026-11-16 12:00:00,")
    ledger = (tmp_path / "ledger.csv").read_text().splitlines()
    assert ledger[1] == "'=1+cmd|' /C calc'!A0,acked,3"  # to a spreadsheet it is no formula


def test_what_the_page_shows_first_can_be_had_as_a_picture(tmp_path: Path) -> None:
    from matplotlib import image

    evil = "$\\frac{ übung"
    some = facts(bands=[Band(evil, 3, [(START, 0.1, 0.2, 0.3)])], outcomes={"acked": 3})
    write_picture(some, str(tmp_path / "some.png"), evil)
    write_picture(Facts([], [], {}, {}, [], [], []), str(tmp_path / "none.png"))
    read, nothing = (image.imread(tmp_path / name) for name in ("some.png", "none.png"))
    assert read.shape[1] == nothing.shape[1] == 1320
    for colour in ((47, 158, 110), (59, 130, 196)):  # what went well, and what was published
        assert (abs(read[:, :, :3] * 255 - colour).max(axis=2) < 2).any(), colour
