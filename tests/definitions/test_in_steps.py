"""A long import goes in steps: refused as a whole, never half a part, and the beginning of it after a crash."""

from __future__ import annotations

import json
import random
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.http.conftest import Api
from tests.support import web
from warrenmq.broker.definitions import importing
from warrenmq.broker.definitions.definitions import InvalidDefinitions, Reader
from warrenmq.broker.vhost_end import delete_vhost
from warrenmq.http.objects import definitions
from warrenmq.server.app import STEPS
from warrenmq.testing import Broker
from warrenmq.testing.core import Core


def document(queues: int = 100) -> dict[str, Any]:
    names = [f"q{number:04}" for number in range(queues)]
    return {
        "users": [{"name": "ann", "password_hash": "", "tags": ""}],
        "vhosts": [{"name": "new"}],
        "permissions": [{"user": "ann", "vhost": "new", "configure": "", "write": "", "read": "^q"}],
        "policies": [{"vhost": "new", "name": "p", "pattern": "^q", "definition": {"max-length": 5}}],
        "exchanges": [{"name": "x", "vhost": "new", "type": "direct", "durable": True}],
        "queues": [{"name": name, "vhost": "new", "durable": True} for name in names],
        "bindings": [
            {"source": "x", "vhost": "new", "destination": name, "destination_type": "queue", "routing_key": name}
            for name in names
        ],
    }


def steps(core: Core, wanted: dict[str, Any]) -> Any:
    broker = core.broker
    reader = Reader(None, importing.existing(broker), broker.services.randomness)
    parts = sum(len(section) for section in wanted.values())
    assert len(list(reader.read(wanted))) == parts  # one step a part
    return importing.apply(broker, reader.finished(), "guest")


def finish(core: Core, taking: Any) -> None:
    core.broker.begin_turn()
    for _ in taking:
        pass
    core.turn()


def size(core: Core) -> tuple[int, int]:
    vhost = core.broker.vhosts.get("new")
    if vhost is None:
        return (0, 0)
    return (len(vhost.queues), sum(len(exchange.bindings_out) for exchange in vhost.exchanges.values()))


def test_a_step_makes_one_thing(tmp_path: Path) -> None:
    core = Core(tmp_path)
    before = (0, 0)
    for _ in steps(core, document()):
        now = size(core)
        assert (now[0] - before[0]) + (now[1] - before[1]) <= 1
        before = now
    assert before == (100, 100)


@pytest.mark.parametrize("taken", [0, 1, 2, 3, 5, 6, 50, 106, 150, 205])
def test_a_crash_in_the_middle_leaves_the_beginning_and_importing_again_completes_it(
    tmp_path: Path, taken: int
) -> None:
    core = Core(tmp_path)
    taking = steps(core, document())
    core.broker.begin_turn()
    for _ in range(taken):
        next(taking)
    core.turn()
    found = size(core)
    core.restart(clean=False)
    assert size(core) == found
    vhost = core.broker.vhosts.get("new")
    if vhost is not None:
        for exchange in vhost.exchanges.values():
            assert all(one.destination.name.name in vhost.queues for one in exchange.bindings_out.values())
    finish(core, steps(core, document()))
    assert size(core) == (100, 100)
    assert core.broker.vhosts["new"].queues["q0001"].policy.name == "p"


def test_what_clients_change_meanwhile_counts_and_is_told(tmp_path: Path) -> None:
    core = Core(tmp_path)
    taking = steps(core, document())
    for _ in range(20):
        next(taking)
    core.broker.registry.access.set_permissions("guest", "new", ".*", ".*", ".*")
    client = core.client(vhost="new")
    assert client.call("queue.declare", queue="q0050", arguments={"x-max-length": 3}).name == "queue.declare-ok"
    assert client.call("queue.delete", queue="q0001").name == "queue.delete-ok"
    with pytest.raises(InvalidDefinitions) as told:
        finish(core, taking)
    assert told.value.problems[0].startswith("imported, but for")
    assert told.value.problems[1:] == [
        "binding of queue 'q0001' in vhost 'new' to exchange 'x' in vhost 'new': no queue 'q0001' in vhost 'new'"
    ]
    assert size(core) == (99, 99)
    assert "x-max-length" in core.broker.vhosts["new"].queues["q0050"].arguments


def test_a_vhost_that_is_deleted_meanwhile_stays_deleted(tmp_path: Path) -> None:
    core = Core(tmp_path)
    taking = steps(core, document())
    for _ in range(10):
        next(taking)
    for _ in delete_vhost(core.broker, core.broker.vhosts["new"]):
        pass
    with pytest.raises(InvalidDefinitions) as told:
        finish(core, taking)
    assert "vhost 'new' is gone" in told.value.problems[1] and told.value.problems[-1].endswith(" more")
    assert "new" not in core.broker.vhosts
    core.restart(clean=False)
    assert "new" not in core.broker.vhosts


def test_an_import_over_http_takes_many_turns() -> None:
    """Each turn that defines something is a batch of the log: there are as many as the parts need."""
    with Broker() as broker, web.Client() as client:
        api = Api(broker, client)
        before = broker.call(lambda: int(broker.server.broker.services.log.batch))
        assert api.ask("POST", "/definitions", document(1000)).status_code == 204
        after = broker.call(lambda: int(broker.server.broker.services.log.batch))
        assert after - before >= 2000 / STEPS
        assert len(api.get("/queues/new?columns=name")) == 1000
        assert [one["name"] for one in api.get("/definitions/new")["queues"]] == [f"q{n:04}" for n in range(1000)]
        wrong = document(1000)
        wrong["vhosts"].append({"name": "newer"})
        wrong["bindings"][-1]["destination"] = "nobody"
        answer = api.ask("POST", "/definitions", wrong)
        assert answer.status_code == 400 and "bindings[999].destination" in answer.text
        assert api.ask("GET", "/vhosts/newer").status_code == 404


class Part(dict[str, Any]):
    """Counts those that exist."""

    alive = 0

    def __init__(self, value: dict[str, Any]) -> None:
        super().__init__(value)
        Part.alive += 1

    def __del__(self) -> None:
        Part.alive -= 1


@pytest.mark.parametrize("wrong", [False, True], ids=["imported", "refused"])
def test_what_was_read_is_freed_a_bounded_number_a_turn(monkeypatch: pytest.MonkeyPatch, wrong: bool) -> None:
    """A hundred thousand parts, freed at once when the request ends, hold everybody up."""
    wanted = document(1000)
    if wrong:
        wanted["bindings"][-1]["destination"] = "nobody"
    shallow = definitions._shallow
    monkeypatch.setattr(definitions, "_shallow", lambda value: Part(shallow(value)))
    alive: list[int] = []
    with Broker() as broker, web.Client() as client:
        take = broker.server._take

        async def watched(what: str, steps: Any, done: Any) -> None:
            def each() -> Any:
                for step in steps:
                    alive.append(Part.alive)
                    yield step

            await take(what, each(), done)

        monkeypatch.setattr(broker.server, "_take", watched)
        assert Api(broker, client).ask("POST", "/definitions", wanted).status_code == (400 if wrong else 204)
    assert max(alive) >= 2000
    freed = [before - after for before, after in zip(alive, [*alive[1:], Part.alive], strict=True)]
    assert max(freed) <= definitions.LET_GO + 1 and Part.alive == 0


def test_everything_that_grew_with_a_document_is_let_go(tmp_path: Path) -> None:
    broker = Core(tmp_path).broker
    reader = Reader(None, importing.existing(broker), broker.services.randomness)
    for _ in reader.read(document()):
        pass
    for _ in definitions.let_go(reader.kept()):
        pass
    plan = reader.plan
    assert not any([plan.users, plan.vhosts, plan.permissions, plan.policies, plan.exchanges, plan.queues])
    assert not any([plan.bindings, reader.kept()[-1]])
    assert not any(reader.kept())


def test_an_import_goes_on_when_whoever_sent_it_leaves() -> None:
    with Broker() as broker, web.Client() as client:
        api = Api(broker, client)
        body = json.dumps(document(2000)).encode()
        with socket.create_connection((broker.host, broker.http_port)) as leaving:
            leaving.sendall(
                b"POST /api/definitions HTTP/1.1\r\nHost: x\r\nAuthorization: Basic Z3Vlc3Q6Z3Vlc3Q=\r\n"
                b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
            )
            while api.ask("GET", "/queues/new/q0000").status_code != 200:  # it has begun
                pass
        while api.ask("GET", "/queues/new/q1999").status_code != 200:
            pass
        broker.settle()
        assert len(api.get("/bindings/new?columns=source")) == 4000  # with those of the default exchange


AWKWARD = [
    {},
    {"a": "}, {"},
    {"a": '\\"}, {\\\\'},
    {"a": [{}, {"b": [{}]}], "c": "[[{{"},
    {"\\": "\\\\"},
    {"ü": "\u20ac"},
]


@pytest.mark.pure
@pytest.mark.parametrize("separators", [(",", ":"), (" , ", " : "), (",\n\t", ": ")], ids=["dense", "spaces", "lines"])
@pytest.mark.parametrize("size", [1, 7, 50])
def test_a_long_list_is_cut_between_its_objects(size: int, separators: tuple[str, str]) -> None:
    listed = random.Random(size).choices(AWKWARD, k=500)
    raw = json.dumps(listed, separators=separators, ensure_ascii=False).encode()
    pieces = [piece for piece in definitions.cut(raw, size) if piece]
    assert [one for piece in pieces for one in json.loads(piece)] == listed
    largest = max(len(json.dumps(one, separators=separators, ensure_ascii=False).encode()) for one in AWKWARD)
    assert max(map(len, pieces)) <= size + largest + len(separators[0]) + 2


@pytest.mark.pure
def test_a_step_takes_a_bounded_part_of_a_list_of_very_many_objects_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    together: list[int] = [0]
    taken_apart = definitions._taken_apart

    def counted(name: str, some: bytes) -> Any:
        together[-1] += len(some)
        return taken_apart(name, some)

    monkeypatch.setattr(definitions, "_taken_apart", counted)
    document: dict[str, Any] = {}
    for _ in definitions.read_document(b'{"queues": [' + b",".join([b"{}"] * 100_000) + b"]}", document):
        together.append(0)
    assert len(document["queues"]) == 100_000
    assert sum(together) > 2 * 100_000
    assert max(together) <= definitions.CUT + 100


@pytest.mark.pure
def test_looking_for_the_end_of_a_long_object_gives_way_too() -> None:
    brackets = 50 * definitions.TOKENS
    raw = b'[{"a":' + b"[" * brackets + b"]" * brackets + b"},{}]"
    steps = list(definitions.cut(raw, definitions.TOKENS))
    assert len(steps) >= 2 * brackets // definitions.TOKENS
    assert b"".join(steps) == raw.replace(b"},{}", b"}][{}")
