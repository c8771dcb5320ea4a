"""Sizes: every form at every door that takes one, with one meaning; RabbitMQ's forms as RabbitMQ reads them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support import web
from tests.support.brokers import RunningBroker, rabbitmq  # noqa: F401 (fixture)
from warrenmq.cli.ctl.command import main
from warrenmq.server.config import SettingsError, load
from warrenmq.sizes import UNITS, parse_size
from warrenmq.testing import Broker

FORMS = {
    "0": 0,
    "1024": 1024,
    "007": 7,
    "1152921504606846976": 1 << 60,
    **{f"3{unit}": 3 * size for unit, size in UNITS.items()},
    **{f"3{unit.upper()}": 3 * size for unit, size in UNITS.items()},
    "1KiB": 1024,
    "1kiB": 1024,
    "1Kb": 1000,
    "50MB": 50_000_000,
    "2TB": 2 * 1000**4,
    "1.5kB": 1500,
    "1.5 GiB": 3 << 29,
    "0.5TiB": 1 << 39,
    " 1GB ": 10**9,
    "1 GB": 10**9,
    "9007199254740993": 9007199254740993,  # no float has it
}
NONE = [
    "",
    " ",
    "GB",
    "-1",
    "-1MB",
    "+1",
    "1XB",
    "1PB",
    "1ki",
    "1e3",
    "1e999",
    "nan",
    "inf",
    "1 2",
    "1,5MB",
    ".5GB",
    "1.GB",
    "1_000",
    "0x10",
    "١٢",
    "9" * 5000,
    "1152921504606846977",
    "2000000TiB",
    "1MB\n1",
]
RABBITMQ = (
    "0",
    "1k",
    "1K",
    "1kib",
    "1kiB",
    "1KIB",
    "1kb",
    "1kB",
    "1KB",
    "1Kb",
    "1m",
    "1M",
    "1mib",
    "1MiB",
    "1MB",
    "1mb",
    "1Mb",
    "1g",
    "1G",
    "1GiB",
    "1GB",
    "1gb",
)

Door = Callable[[Broker, Path, str], int | None]  # None: refused


def by_file(broker: Broker, folder: Path, text: str) -> int | None:
    file = folder / "warren.toml"
    quoted = "".join(f"\\u{ord(each):04x}" for each in text)
    file.write_text(f'disk_free_limit = "{quoted}"\n')
    return settings({"config": str(file)}, {})


def by_flag(broker: Broker, folder: Path, text: str) -> int | None:
    return settings({"disk_free_limit": text}, {})


def by_variable(broker: Broker, folder: Path, text: str) -> int | None:
    return settings({}, {"WARREN_DISK_FREE_LIMIT": text})


def settings(flags: dict[str, str], environment: dict[str, str]) -> int | None:
    try:
        return load(flags, environment).disk_free_limit
    except SettingsError as refused:
        assert "64KiB" in str(refused)
        return None


def by_http(broker: Broker, folder: Path, text: str) -> int | None:
    answer = CLIENT.put(f"{node(broker)}/limits", json={"disk_free_limit": text})
    if answer.status_code == 400:
        assert "size" in answer.text or "unit" in answer.text
        return None
    assert answer.status_code == 204
    return limit(broker)


def by_ctl(broker: Broker, folder: Path, text: str) -> int | None:
    if main(["--url", f"http://guest:guest@{broker.host}:{broker.http_port}", "set_disk_free_limit", text]):
        return None
    return limit(broker)


CLIENT = web.Client(auth=("guest", "guest"))


def node(broker: Broker) -> str:
    return f"{broker.http_url}/api/nodes/warren@localhost"


def limit(broker: Broker) -> int:
    return int(CLIENT.get(node(broker)).json()["disk_free_limit"])


DOORS: list[Door] = [by_file, by_flag, by_variable, by_http, by_ctl]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.mark.parametrize("door", DOORS)
def test_every_form_of_a_size_is_taken_at_every_door(door: Door, broker: Broker, tmp_path: Path) -> None:
    assert {text: door(broker, tmp_path, text) for text in FORMS} == FORMS


@pytest.mark.parametrize("door", DOORS)
def test_what_is_no_size_is_refused_at_every_door(door: Door, broker: Broker, tmp_path: Path) -> None:
    assert {text: door(broker, tmp_path, text) for text in NONE} == dict.fromkeys(NONE)


@pytest.mark.parametrize("text", FORMS)
def test_a_watermark_in_bytes_takes_the_same_forms(text: str) -> None:
    if FORMS[text] > 1 and not re.fullmatch(r"[\d.]+", text):
        assert load({"memory_high_watermark": text}, {}).memory_high_watermark == FORMS[text]


def test_rabbitmqs_sizes_mean_what_they_mean_there(rabbitmq: RunningBroker) -> None:  # noqa: F811
    listed = ",".join(f'"{text}"' for text in RABBITMQ)
    said = rabbitmq.ctl(
        "eval", f"[begin {{ok, N}} = rabbit_resource_monitor_misc:parse_information_unit(F), N end || F <- [{listed}]]."
    )
    assert [int(number) for number in re.findall(r"\d+", said)] == [parse_size(text) for text in RABBITMQ]
