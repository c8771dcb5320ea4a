"""`warren serve` and the process that writes its journal: by itself, within seconds, whoever is killed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pika
import pytest

from tests.log.test_journal_files import in_order, rows_of, told
from tests.log.test_told_events import persistent
from tests.support import web
from tests.support.brokers import start_warren
from warrenmq.journal.files import index_of
from warrenmq.server import journal
from warrenmq.testing import Broker

pytest.importorskip("pyarrow")

from warrenmq.journal.index import Index  # noqa: E402 (needs pyarrow)


def until(question: Callable[[], bool]) -> None:
    """However long that takes: the test has a time-out of its own."""
    while not question():
        time.sleep(0.01)


def publish(url: str, *ids: str) -> None:
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("q", durable=True)
        for id in ids:
            channel.basic_publish("", "q", b"body", persistent(id))


def journalled(data: Path) -> list[str]:
    """The message ids of the publishes that the files tell, as a reader finds them at any moment."""
    for _ in range(100):
        try:
            return [row["message_id"] for row in read(data) if row["event"] == "published"]
        except FileNotFoundError:
            pass  # joined meanwhile
    raise AssertionError("files come and go")


def read(data: Path) -> list[dict[str, Any]]:
    return rows_of(data / "journal")


def metric(broker: Broker, name: str) -> float:
    for line in web.get(f"{broker.http_url}/metrics").text.splitlines():
        if line.startswith(f"{name} "):
            return float(line.rpartition(" ")[2])
    raise AssertionError(name)


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()] + [
        int(child)
        for task in Path(f"/proc/{pid}/task").iterdir()
        if task.name != str(pid)
        for child in (task / "children").read_text().split()
    ]


def is_nice(pid: int) -> bool:
    return os.getpriority(os.PRIO_PROCESS, pid) == 10


def test_a_broker_writes_its_journal_by_itself_and_the_rest_when_it_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "LAST", 600.0)  # however busy the machine is
    data = tmp_path / "data"
    with Broker(data_dir=data, journal="on", journal_interval=0.1) as broker:
        publish(broker.url, "first")
        until(lambda: journalled(data) == ["first"])
        publish(broker.url, "second")
        until(lambda: journalled(data) == ["first", "second"])
        answer = web.get(f"{broker.http_url}/api/health/checks/journal", auth=("guest", "guest"))
        assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
        until(lambda: metric(broker, "warren_journal_lag_seconds") == 0)
        until(lambda: metric(broker, "warren_journal_events_total") == len(read(data)))
        assert metric(broker, "warren_journal_bytes") > 0 and metric(broker, "warren_journal_gaps_total") == 0
        publish(broker.url, "third")
    assert journalled(data) == ["first", "second", "third"]
    assert in_order(read(data)) == in_order(told(data))


def test_a_broker_that_was_killed_has_its_journal_completed_by_the_next(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with start_warren(data_dir=data, stop_cleanly=False) as first:
        publish(first.url, "killed")
        first.process.kill()
        first.process.wait()
    with start_warren("--journal", "on", data_dir=data) as second:
        publish(second.url, "after")
        until(lambda: journalled(data) == ["killed", "after"])
        [down] = [row for row in read(data) if row["event"] == "interrupted"]
        times = {row["message_id"]: row["time"] for row in read(data) if row["event"] == "published"}
        assert times["killed"] <= down["time"] < down["until"].isoformat(timespec="microseconds") <= times["after"]
        assert "number" not in down, "nobody knows how much was not written"


def test_the_process_is_nice_ends_with_its_broker_and_is_started_again_when_it_is_killed(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with start_warren("--journal", "on", "--journal-interval", "0.1", data_dir=data, stop_cleanly=False) as broker:
        publish(broker.url, "0")
        until(lambda: len(children(broker.process.pid)) == 1)
        killed: set[int] = set()
        for number in range(1, 4):
            until(lambda: len(set(children(broker.process.pid)) - killed) == 1)
            (child,) = set(children(broker.process.pid)) - killed
            until(partial(is_nice, child))
            publish(broker.url, str(number))
            os.kill(child, signal.SIGKILL)
            killed.add(child)
        expected = [str(number) for number in range(4)]
        until(lambda: journalled(data) == expected)
        until(lambda: len(set(children(broker.process.pid)) - killed) == 1)
        (child,) = set(children(broker.process.pid)) - killed
        broker.process.kill()
        broker.process.wait()
        until(lambda: not Path(f"/proc/{child}").exists())


def test_a_short_life_has_no_journal_and_off_is_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "FIRST", 3600.0)
    with Broker(data_dir=tmp_path / "short", journal="on") as broker:
        publish(broker.url, "one")
    monkeypatch.setattr(journal, "FIRST", 0.0)
    with Broker(data_dir=tmp_path / "off") as broker:
        publish(broker.url, "one")
    assert not (tmp_path / "short" / "journal").exists() and not (tmp_path / "off" / "journal").exists()


def test_without_pyarrow_one_line_says_what_to_install_and_nothing_else_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(journal, "find_spec", lambda name: None if name == "pyarrow" else find_spec(name))
    with Broker(data_dir=tmp_path, journal="on") as broker:
        publish(broker.url, "one")
        answer = web.get(f"{broker.http_url}/api/health/checks/journal", auth=("guest", "guest"))
        assert answer.status_code == 503 and "pip install" in answer.json()["reason"]
        assert metric(broker, "warren_journal_failing") == 1
    said = [line for line in caplog.messages if line.startswith("journal.")]
    assert len(said) == 1 and "pip install" in said[0]


def test_its_settings_change_with_a_signal_while_it_runs(tmp_path: Path) -> None:
    data, file = tmp_path / "data", tmp_path / "warren.toml"

    def configure(**settings: object) -> None:
        lines = [
            f"{name} = {value}" for name, value in {"journal_max_age": 0, "journal_max_bytes": 0, **settings}.items()
        ]
        file.write_text("\n".join(lines) + "\n")

    def reload(**settings: object) -> None:
        configure(**settings)
        broker.process.send_signal(signal.SIGHUP)

    def segments() -> set[int]:
        return {int(path.name.split("-")[2]) for path in (data / "journal").glob("*.parquet")}

    def indexed() -> list[list[str]]:
        found = []
        for path in (data / "journal").glob("*.parquet"):
            with suppress(FileNotFoundError):  # joined meanwhile
                found.append(Index(index_of(path)).headers)
        return found

    def fifth_indexed() -> bool:
        publish(broker.url, "fifth")  # again, as the first may have come before the signal
        return ["tenant"] in indexed()

    configure(journal_interval=0.1)
    for life in ("first", "second"):  # each has a segment of its own
        with start_warren("--journal", "on", "--config", str(file), data_dir=data) as broker:
            publish(broker.url, life)
            until(lambda: life in journalled(data))  # noqa: B023
    with start_warren("--journal", "on", "--config", str(file), data_dir=data) as broker:
        publish(broker.url, "third")
        until(lambda: "third" in journalled(data))
        reload(journal_interval=3600.0)
        publish(broker.url, "fourth")
        reload(journal_interval=0.1)
        until(lambda: "fourth" in journalled(data))
        assert not any(indexed())
        reload(journal_interval=0.1, journal_index_headers='["tenant"]')
        until(fifth_indexed)
        assert {1, 2} < segments()
        reload(journal_interval=0.1, journal_max_bytes=1)
        until(lambda: segments() == {0, 3})
    configure(journal_interval=0.1)
    with start_warren("--journal", "on", "--config", str(file), data_dir=data) as broker:
        publish(broker.url, "sixth")
        until(lambda: segments() == {0, 3, 4})
        reload(journal_interval=0.1, journal_max_age=0.001)
        until(lambda: segments() == {0, 4})


def test_while_the_disk_is_short_of_room_the_journal_pauses_and_says_so_once(tmp_path: Path) -> None:
    data, file = tmp_path / "data", tmp_path / "warren.toml"
    file.write_text(f"disk_free_limit = {2**60}\njournal_interval = 0.1\n")

    def declare() -> None:
        with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
            connection.channel().queue_declare("q", durable=True)

    with start_warren("--journal", "on", "--config", str(file), data_dir=data) as broker:
        declare()
        until(lambda: broker.http("GET", "/api/health/checks/journal")[0] == 503)
        assert "disk_free_limit" in str(broker.http("GET", "/api/health/checks/journal")[1])
        for _ in range(3):  # it goes on trying
            declare()
            time.sleep(0.2)
        assert not list((data / "journal").glob("*.parquet"))
        file.write_text("disk_free_limit = 0\njournal_interval = 0.1\n")
        broker.process.send_signal(signal.SIGHUP)
        until(lambda: broker.http("GET", "/api/health/checks/journal")[0] == 200)
        said = [line.split()[2] for line in (broker.folder / "log").read_text().splitlines() if " journal." in line]
        assert said == ["journal.not_written", "journal.written_again"]
