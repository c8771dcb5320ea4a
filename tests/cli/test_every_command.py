"""Every command of the catalogue, with good and with bad input: its exit status, one line, no traceback."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pika
import pytest

from tests.cli.conftest import Run
from tests.cli.test_house_rules import ALL
from tests.support.brokers import RunningBroker, start_warren

#: Spark jobs and the show with Spark, which tests/spark runs; and rabbitmqctl's own verbs (tests/moving)
ELSEWHERE = {path for path in ALL if path.split()[0] in ("pipeline", "demo", "ctl")}
#: needs several nodes (tests/cluster)
IN_A_CLUSTER = {path for path in ALL if path.split()[0] == "cluster"}
NOBODY = "amqp://127.0.0.1:1/"


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with start_warren("--journal", "on") as running:
        with pika.BlockingConnection(pika.URLParameters(running.url)) as connection:
            channel = connection.channel()
            channel.queue_declare("orders", durable=True)
            channel.exchange_declare("events", "topic", durable=True)
            channel.queue_bind("orders", "events", "order.#")
            channel.queue_declare("dead", durable=True)
            delayed = {"x-delayed-type": "fanout"}
            channel.exchange_declare("later", "x-delayed-message", durable=True, arguments=delayed)
            channel.queue_bind("dead", "later")
            channel.confirm_delivery()
            for number in range(9):
                properties = pika.BasicProperties(message_id=f"m{number}", delivery_mode=2)
                channel.basic_publish("events", "order.new", b"x", properties)
            for _ in range(4):
                channel.basic_publish("later", "k", b"x", pika.BasicProperties(headers={"x-delay": 10_000_000}))
        yield running


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    (tmp_path / "file").write_text("no folder of a broker\n")
    (tmp_path / "empty").mkdir()
    (tmp_path / "change").write_text('{"delete": {"bindings": [{"source": "events"}]}, "put": {}}')
    return tmp_path


# -- good: a line each, in an order in which one makes what the next one needs ----------------------------------------

GOOD = """
version --json
cheat
completion bash
context save here {url}
context list
context use here
declare queue made --type quorum
declare exchange out --type fanout
bind out made
publish --exchange out k body
publish made body --confirm
get made
peek made
consume made -n 1
unbind out made
pause made
resume made
purge made
delete queue made
delete exchange out
queues
exchanges
bindings
connections
channels
consumers
explain events order.new
where --message-id m1
whatif {folder}/change
doctor
ledger
top --json
watch queue orders --interval 100ms --count 1
watch exchange events --interval 100ms --count 1
copy orders dead --limit 2
move orders dead --limit 1
transfers list
transfers show {transfer}
transfers undo {transfer}
transfers cancel {finished}
redrive dead --dry-run
delayed list
delayed show {delayed}
delayed reschedule {delayed} --in 2h
delayed deliver-now {delayed}
delayed cancel {other_delayed}
damaged list
user add ann secret
user list
user password ann other
user tags ann --tag monitoring
permission set ann .* .* .*
permission list
permission clear ann
user delete ann
policy set short ^tmp -a message-ttl=1000
policy list
policy clear short
trace --timeout 0.3
backup {folder}/copy
log inspect {folder}/copy
log events {folder}/copy
log verify {folder}/copy
log salvage {folder}/copy {folder}/salvaged
log backup {folder}/copy {folder}/another
journal export {folder}/copy {folder}/exported
bench --messages 20 --size 10
migrate {url} {url} --dry-run
context forget here
"""
#: what leaves with 1 because the answer is no: here, because nothing is wrong with that
NO = {"trace", "doctor", "transfers cancel", "migrate", "whatif"}


def named(line: str) -> str:
    """The command of a line."""
    words = line.split()
    return " ".join(words[:2]) if " ".join(words[:2]) in ALL else words[0]


def lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line]


def test_the_lines_are_of_every_command() -> None:
    assert {named(line) for line in lines(GOOD)} - {"version"} == set(ALL) - ELSEWHERE - IN_A_CLUSTER - {"damaged drop"}
    assert {named(line) for line in lines(BAD)} - {"version", "serve"} == set(ALL) - {"demo", "doctor", "ctl"}


@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
def test_every_command_does_its_work_and_leaves_with_0(
    as_json: bool, warren: Run, broker: RunningBroker, folders: Path
) -> None:
    """As text and, where ``--json`` asks for it, as JSON: one document, or one a line."""
    known = {"url": broker.url, "folder": str(folders)}
    until = time.monotonic() + 120
    while warren("where", "--message-id", "m1", WARREN_URL=broker.url)[0] == 2 and time.monotonic() < until:
        time.sleep(0.2)  # the journal's process begins when the broker has settled
    for line in lines(GOOD):
        known |= names(warren, broker) if "{transfer" in line or "{finished" in line or "delayed" in line else {}
        arguments = [word.format(**known) for word in line.split()]
        arguments += ["--json"] if as_json and "--json" not in arguments else []
        status, out, err = warren(*arguments, WARREN_URL=broker.url)
        if as_json:
            assert is_json(out), (line, out)
        allowed = (0, 1, 2) if named(line) in NO else (0,)
        assert status in allowed and "Traceback" not in err, (line, status, out, err)
        if status == 0:
            assert err == "" or named(line) in CHATTY, (line, err)
            assert out or named(line) in ("consume", "trace"), line
        else:
            assert len(err.splitlines()) <= 1, (line, err)


def is_json(text: str) -> bool:
    for parts in ([text], text.splitlines()):
        try:
            return all(isinstance(json.loads(part), dict | list) for part in parts)
        except ValueError:
            pass
    return False


#: says on standard error how far it is
CHATTY = {"where", "copy", "move", "redrive", "trace", "migrate"}


def names(warren: Run, broker: RunningBroker) -> dict[str, str]:
    """Of what got its name from the broker."""
    found: dict[str, str] = {}
    transfers = json.loads(warren("transfers", "list", "--json", WARREN_URL=broker.url)[1] or "[]")
    if len(transfers) > 1:
        found["transfer"], found["finished"] = (str(one["id"]) for one in transfers[-2:])
    waiting = json.loads(warren("delayed", "list", "--json", WARREN_URL=broker.url)[1] or "[]")
    if waiting:
        found["delayed"], found["other_delayed"] = str(waiting[0]["id"]), str(waiting[-1]["id"])
    return found


# -- bad: one line, status 1 or 2, nothing on standard output ----------------------------------------------------------

BAD = """
version --jsn
serve --prot 5672
serve --memory-high-watermark 2
serve --interceptors no.such:Thing
cheat nonsense
completion tcsh
context save here nonsense
context list x
context use nowhere
context forget nowhere
declare queue orders --type stream
declare exchange events --type direct
bind nowhere orders
unbind events orders nothing
publish --exchange nowhere k body
publish nowhere body
get nowhere
peek nowhere
consume nowhere
purge nowhere
pause nowhere
resume nowhere
delete queue nowhere
delete exchange nowhere
queues --vhost nowhere
exchanges --vhost nowhere
bindings --vhost nowhere
connections x y
channels x y
consumers --vhost nowhere
explain nowhere k
where --since nonsense
whatif {folder}/file
ledger --queue nowhere
cluster status
cluster transfer n2
cluster add n2
cluster remove n2
cluster pause
cluster upgrade
cluster recover
cluster force n2
top nonsense
top --vhost nowhere --json
watch queue nowhere
watch exchange nowhere
copy nowhere dead
move orders nowhere
redrive nowhere
redrive nowhere --groups
transfers list --vhost nowhere
transfers show 999
transfers undo 999
transfers cancel nonsense
delayed list --from nonsense
delayed list --vhost nowhere
delayed show nonsense --vhost nowhere
delayed show nonsense
delayed reschedule nonsense --in 2h
delayed deliver-now nonsense
delayed cancel nonsense
damaged list x
damaged drop
user add
user list x
user password nobody other
user tags nobody --tag monitoring
user delete nobody
permission set nobody .* .* .*
permission list --vhost nowhere
permission clear nobody
policy set short ( -a message-ttl=1000
policy set short ^tmp -a mesage-ttl=1000
policy list --vhost nowhere
policy clear nowhere
trace --count x
backup {folder}/file
log inspect {folder}/file
log events {folder}/nowhere
log events {folder}/empty
log verify {folder}/empty
log salvage {folder}/nowhere {folder}/salvaged
log backup {folder}/nowhere {folder}/another
journal export {folder}/nowhere {folder}/exported
bench --messages 0
migrate nonsense {url}
pipeline project
pipeline replay
pipeline replay {folder}/empty --since nonsense
pipeline replay {folder}/empty --yes
pipeline lake
pipeline watch
pipeline whatif
pipeline ingest
pipeline publish
pipeline route
pipeline summary
pipeline audit
pipeline report
"""


@pytest.mark.parametrize("line", lines(BAD))
def test_what_is_wrong_is_one_line_and_a_status(line: str, warren: Run, broker: RunningBroker, folders: Path) -> None:
    arguments = [word.format(url=broker.url, folder=folders) for word in line.split()]
    if named(line) == "serve":
        arguments += ["--port", "0", "--data-dir", str(folders / "data"), "--log-level", "error"]
        program = [sys.executable, "-m", "warrenmq", *arguments]
        ended = subprocess.run(program, env=broker.environment, capture_output=True, text=True, timeout=300)
        status, out, err = ended.returncode, ended.stdout, ended.stderr
    else:
        status, out, err = warren(*arguments, WARREN_URL=broker.url)
    assert status in (1, 2), (status, out, err)
    if named(line) == "publish":  # what the broker said is what was asked for
        out, err = "", f"warren: {out}"
    assert len(err.splitlines()) == 1 and err.startswith("warren"), err
    assert out == "" and "Traceback" not in err and "Errno" not in err
    for inside in ("<class", "None", "NoneType", "Error(", '<<"', '{"', "{'", "Not Found", "starting Spark"):
        assert inside not in err, err


#: without its arguments it is wrong before it asks anybody
UNASKED = {"damaged drop", "whatif"}


@pytest.mark.parametrize(
    "path",
    [
        path
        for path, command in ALL.items()
        if path not in ELSEWHERE | UNASKED and any("--url" in parameter.opts for parameter in command.params)
    ],
)
def test_where_no_broker_answers_every_command_says_so_and_leaves_with_3(
    path: str, warren: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"published, or a password\n")))
    needed = ["x" for one in ALL[path].params if one.param_type_name == "argument" and one.required]
    status, out, err = warren(*path.split(), *needed, "--url", NOBODY)
    assert (status, out) == (3, "")
    assert err in {
        f"warren {path}: no broker answers at 127.0.0.1:1: Connection refused\n",
        f"warren {path}: cannot connect to 127.0.0.1:1: Connection refused\n",
    }
