"""doctor, watch and cheat: what is wrong with its cure, figures a line at a time, commands to copy."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator

import pytest

from tests.cli.conftest import Run
from tests.support.brokers import RunningBroker, rabbitmq  # noqa: F401 (fixture)
from warrenmq.cli._catalog import COMMANDS
from warrenmq.cli.cheat import SHEET
from warrenmq.cli.doctor import Finding, _alarms, _backlog
from warrenmq.cli.main import build_app
from warrenmq.client import Connection
from warrenmq.testing import Broker


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as one:
        yield one


def test_a_healthy_broker_has_nothing_to_complain_of(warren: Run, broker: Broker) -> None:
    assert warren("declare", "queue", "q", WARREN_URL=broker.url)[0] == 0
    assert warren("doctor", WARREN_URL=broker.url) == (0, "nothing to complain of\n", "")
    assert warren("doctor", "--json", WARREN_URL=broker.url) == (0, "[]\n", "")


def test_whatever_is_wrong_is_named_with_its_cure_and_status_1(warren: Run, broker: Broker) -> None:
    for line in (
        "declare queue alone",
        "declare queue dead -a x-dead-letter-exchange=gone",
        "declare exchange lost -a alternate-exchange=nowhere",
        "declare queue by-policy",
        "policy set idle ^zzz -a max-length=5",
        "policy set dlx ^by-policy -a dead-letter-exchange=missing",
        "publish alone x --confirm",
        "declare queue held",
        "pause held",
    ):
        assert warren(*line.split(), WARREN_URL=broker.url)[0] == 0, line
    with Connection(broker.url, connection_name="mute"), Connection(broker.url, connection_name="fine", heartbeat=60):
        status, out, err = warren("doctor", "--json", WARREN_URL=broker.url)
        assert (status, err) == (1, "")
        found = {(one["what"], one["where"]): one["cure"] for one in json.loads(out)}
        shown = warren("doctor", WARREN_URL=broker.url)[1].splitlines()
    assert set(found) == {
        ("no consumer", "alone in vhost '/', 1 message waits"),
        ("paused", "held in vhost '/', 0 messages wait"),
        ("dead-letter exchange missing", "dead in vhost '/': gone"),
        ("dead-letter exchange missing", "by-policy in vhost '/': missing"),
        ("alternate exchange missing", "lost in vhost '/': nowhere"),
        ("policy without effect", "idle in vhost '/', pattern ^zzz"),
        ("connection without heartbeat", "mute"),
    }
    assert "warren declare exchange -p / gone" in found["dead-letter exchange missing", "dead in vhost '/': gone"]
    assert found["policy without effect", "idle in vhost '/', pattern ^zzz"].endswith("warren policy clear -p / idle")
    assert shown[0] == "WHAT\tWHERE\tCURE" and len(shown) == 1 + len(found)
    assert warren("declare", "exchange", "gone", WARREN_URL=broker.url)[0] == 0  # the cure cures
    assert warren("resume", "held", WARREN_URL=broker.url)[0] == 0
    cured = warren("doctor", WARREN_URL=broker.url)[1]
    assert "gone" not in cured and "paused" not in cured


def test_a_cure_can_be_copied_whatever_the_names_are(warren: Run, broker: Broker) -> None:
    for name in ("it's; here", "$(odd) `name`", "--dashed"):
        for words in (["queue", name, "-a", f"x-dead-letter-exchange={name}"], ["queue", f"{name} full"]):
            kind, queue, *more = words
            assert warren("declare", kind, *more, "--", queue, WARREN_URL=broker.url)[0] == 0
        assert warren("publish", "--", f"{name} full", "x", WARREN_URL=broker.url)[0] == 0
        said = json.loads(warren("doctor", "--json", WARREN_URL=broker.url)[1])
        cures = [one["cure"] for one in said if name in one["where"]]
        assert len(cures) == 2
        for cure in cures:
            assert warren(*shlex.split(cure.partition(": warren ")[2]), WARREN_URL=broker.url)[0] == 0, cure
        assert warren("purge", "--", f"{name} full", WARREN_URL=broker.url)[0] == 0
        said = json.loads(warren("doctor", "--json", WARREN_URL=broker.url)[1])
        assert [one for one in said if name in one["where"]] == []


@pytest.mark.parametrize(
    ("queue", "told"),
    [
        ({"messages": 5000, "consumers": 1, "messages_details": {"rate": 12.0}}, True),
        ({"messages": 5000, "consumers": 1, "messages_details": {"rate": -3.0}}, False),
        ({"messages": 5000, "consumers": 1, "messages_details": {"rate": 0.0}}, False),
        ({"messages": 10, "consumers": 1, "messages_details": {"rate": 12.0}}, False),
        ({"messages": 5000, "consumers": 1}, False),
        ({"messages": 5000, "messages_ready": 5000, "type": "stream", "messages_details": {"rate": 12.0}}, False),
    ],
)
def test_a_backlog_is_told_when_it_is_large_and_grows(queue: dict[str, object], told: bool) -> None:
    found = list(_backlog({"name": "q", "vhost": "/", **queue}, 1000))
    assert [one.what for one in found] == (["growing backlog"] if told else [])


def test_alarms_are_told() -> None:
    assert list(_alarms([{"name": "n", "mem_alarm": False, "disk_free_alarm": False}])) == []
    found = list(_alarms([{"name": "n", "mem_alarm": True, "disk_free_alarm": True}]))
    assert [(one.what, one.where) for one in found] == [("memory alarm", "n"), ("disk alarm", "n")]
    assert all(isinstance(one, Finding) and one.cure for one in found)


def test_rabbitmq_can_be_examined_too(warren: Run, rabbitmq: RunningBroker) -> None:  # noqa: F811
    status, out, err = warren("doctor", "--json", "-u", rabbitmq.http_url.replace("://", "://guest:guest@"))
    assert status in (0, 1) and err == "" and isinstance(json.loads(out), list)


def test_a_queue_and_an_exchange_are_watched_a_line_at_a_time(warren: Run, broker: Broker) -> None:
    assert warren("declare", "queue", "q", WARREN_URL=broker.url)[0] == 0
    assert warren("publish", "q", "x", "-n", "3", WARREN_URL=broker.url)[0] == 0
    status, out, err = warren("watch", "queue", "q", "--interval", "10ms", "-n", "3", WARREN_URL=broker.url)
    assert (status, err) == (0, "")
    head, *lines = [line.split("\t") for line in out.splitlines()]
    assert head == ["TIME", "READY", "UNACKED", "CONSUMERS", "IN/S", "OUT/S", "ACK/S", "AGAIN/S"]
    assert [line[1:4] for line in lines] == [["3", "0", "0"]] * 3
    assert lines[0][4:] == [""] * 4 and all(float(one) >= 0 for one in lines[2][4:])  # a rate needs two looks
    status, out, _ = warren("watch", "exchange", "amq.topic", "-n", "1", "--json", WARREN_URL=broker.url)
    assert status == 0 and set(json.loads(out)) == {"time", "in/s", "out/s"}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("watch queue qq", "no queue 'qq' in vhost '/' (did you mean q?)"),
        ("watch exchange amq.topik", "(did you mean amq.topic?)"),
        ("watch queue q --interval soon", "--interval: 'soon' is no time span"),
        ("watch quue q", "Did you mean 'queue'?"),
        ("cheat mesages", "no task 'mesages' (start, topology, messages, access, operate)"),
        ("doctor --backlog 0", "--backlog"),
    ],
)
def test_what_is_wrong_is_one_line(line: str, said: str, warren: Run, broker: Broker) -> None:
    assert warren("declare", "queue", "q", WARREN_URL=broker.url)[0] == 0
    status, out, err = warren(*line.split(), WARREN_URL=broker.url)
    assert (status, out) == (2, "") and said in err and len(err.splitlines()) == 1


def test_the_cheat_sheet_has_commands_that_exist_with_options_that_exist(warren: Run) -> None:
    from typer.main import get_command

    for lines in SHEET.values():
        for line in lines:
            _, name, *words = shlex.split(line)
            assert name in COMMANDS
            if not COMMANDS[name].module or name == "ctl":
                continue
            command = get_command(build_app(name)).commands[name]  # type: ignore[attr-defined]
            while hasattr(command, "commands"):
                command = command.commands[words.pop(0)]
            command.make_context(name, words)  # raises for what it does not take
    status, out, _ = warren("cheat")
    assert status == 0 and all(f"# {task}\n" in out for task in SHEET)
    assert json.loads(warren("cheat", "access", "--json")[1]) == {"access": SHEET["access"]}
