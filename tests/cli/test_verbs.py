"""declare, bind, delete, purge, users, permissions, policies and lists: each with good and with bad input."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator

import pytest

from tests.cli.conftest import Run
from warrenmq.client import Connection
from warrenmq.testing import Broker


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as one:
        yield one


#: what is typed, and the one line that is printed; in this order, on a new broker
GOOD = [
    ("declare queue orders", "declared queue orders"),
    ("declare queue orders", "queue orders is there already, as said"),
    ("declare queue bids --type quorum -a x-delivery-limit=5", "declared queue bids"),
    ("declare queue odd/name -a x-max-length:=10 -a x-overflow=reject-publish", "declared queue odd/name"),
    ('declare queue tmp --transient --auto-delete --arguments {"x-message-ttl":5000}', "declared queue tmp"),
    ("declare exchange events --type topic", "declared exchange events"),
    ("declare exchange inner --type fanout --internal --transient", "declared exchange inner"),
    ("bind events orders order.#", "bound orders to events by 'order.#'"),
    ("bind events orders order.#", "bound orders to events by 'order.#'"),
    ("bind events inner #  --to-exchange", "bound inner to events by '#'"),
    ("bind amq.headers orders -a x-match=any -a tenant=acme", "bound orders to amq.headers"),
    ("unbind amq.headers orders -a x-match=any -a tenant=acme", "unbound orders from amq.headers"),
    ("unbind events orders order.#", "unbound orders from events by 'order.#'"),
    ("purge orders", "purged queue orders"),
    ("pause orders", "paused queue orders"),
    ("resume orders", "resumed queue orders"),
    ("delete queue orders --if-empty --if-unused", "deleted queue orders"),
    ("delete exchange inner", "deleted exchange inner"),
    ("user add ann s3cret --tag monitoring --tag policymaker", "added user ann"),
    ("user password ann other", "changed the password of ann"),
    ("user tags ann --tag administrator", "user ann has administrator"),
    ("permission set ann ^ann[.] .* ^$", "ann may use vhost /"),
    ("permission clear ann", "ann may not use vhost / any more"),
    ("user delete ann", "deleted user ann"),
    ("policy set short ^tmp -a message-ttl=60000 --apply-to queues --priority 3", "set policy short"),
    ("policy clear short", "cleared policy short"),
]

#: what is typed, and how the one line on standard error ends; on a broker with a queue orders and an exchange events
BAD = [
    ("declare queue orders --transient", "inequivalent arg 'durable' for queue 'orders' in vhost '/'"),
    ("declare queue x --type clasic", "unsupported queue type 'clasic'"),
    ("declare queue x -a x-max-length=-5", "x-max-length"),
    ("declare queue x -a novalue", "--argument 'novalue': an argument is name=value or name:=JSON"),
    ("declare queue x -a n:={", "--argument 'n:={': '{' is no JSON"),
    ("declare queue x --arguments [1]", "a JSON object is wanted, such as"),
    ("declare queue x --arguments {", "is no JSON"),
    ("declare queue x -p nowhere", "no vhost 'nowhere'"),
    ("declare exchange x --type topik", "unknown exchange type 'topik'"),
    ("declare exchange amq.mine", "user 'guest' may not do this: Access refused"),
    ("declare quue x", "Did you mean 'queue'?"),
    ("delete queue ordes", "no queue 'ordes' in vhost '/' (did you mean orders?)"),
    ("delete queue zzz", "no queue 'zzz' in vhost '/'"),
    ("delete exchange event", "no exchange 'event' in vhost '/' (did you mean events?)"),
    ("delete exchange amq.topic", "user 'guest' may not do this: Access refused"),
    ("delete queue full --if-empty", "not empty"),
    ("delete queue orders -p nowhere", "no vhost 'nowhere'"),
    ("purge ordres", "no queue 'ordres' in vhost '/' (did you mean orders?)"),
    ("pause ordres", "no queue 'ordres' in vhost '/' (did you mean orders?)"),
    ("bind event orders k", "no exchange 'event' in vhost '/' (did you mean events?)"),
    ("bind events order k", "no queue 'order' in vhost '/' (did you mean orders?)"),
    ("unbind events orders nokey", "no such binding of orders to events by 'nokey' (bound by 'a.#')"),
    ("unbind amq.topic orders a", "no such binding of orders to amq.topic by 'a' (nothing binds the two)"),
    ("user add guest x", "`warren user password` and `warren user tags` change him"),
    ("user password gest x", "no user 'gest' (did you mean guest?)"),
    ("user tags nobody", "no user 'nobody'"),
    ("user delete gust", "no user 'gust' (did you mean guest?)"),
    ("permission set gest", "no user 'gest' (did you mean guest?)"),
    ("permission set guest ( .* .*", "("),
    ("permission set guest -p nowhere", "no vhost 'nowhere'"),
    ("permission clear guest -p nowhere", "guest has no permissions in vhost 'nowhere'"),
    ("policy set p ^x", "a policy without a key does nothing"),
    ("policy set p ^x -a no-such-key=1", "no-such-key"),
    ("policy set p ^x -a max-length=many", "validation failed: 'many' is not a valid maximum length"),
    ("policy set p ( -a max-length=1", "validation failed: pattern should be regular expression"),
    ("policy set p ^x -a max-length=1 --apply-to quues", "apply-to"),
    ("policy clear shrt", "no policy 'shrt' in vhost '/' (did you mean short?)"),
    ("queues -p nowhere", "no vhost 'nowhere'"),
    ("ledger -p nowhere", "no vhost 'nowhere'"),
    ("peek ordes", "no queue 'ordes' in vhost '/' (did you mean orders?)"),
    ("copy ordes full", "no queue 'ordes' in vhost '/' (did you mean orders?)"),
    ("redrive ordes --groups", "no queue 'ordes' in vhost '/' (did you mean orders?)"),
    ("ledger -q ordes", "no queue 'ordes' in vhost '/' (did you mean orders?)"),
    ("queues --jsn", "no option --jsn (did you mean --json?)"),
    ("purge", "Missing argument 'QUEUE'"),
]


def words(line: str) -> list[str]:
    return line.split()


def test_what_is_typed_is_done_and_said_in_one_line(warren: Run, broker: Broker) -> None:
    for line, said in GOOD:
        assert warren(*words(line), WARREN_URL=broker.url) == (0, said + "\n", ""), line


def test_what_is_wrong_is_one_line_with_status_2_and_no_traceback(warren: Run, broker: Broker) -> None:
    for line in ("declare queue orders", "declare queue full", "declare exchange events --type topic"):
        assert warren(*words(line), WARREN_URL=broker.url)[0] == 0
    assert warren("bind", "events", "orders", "a.#", WARREN_URL=broker.url)[0] == 0
    assert warren("publish", "full", "x", "--confirm", WARREN_URL=broker.url)[0] == 0
    assert warren(*words("policy set short ^s -a max-length=1"), WARREN_URL=broker.url)[0] == 0
    for line, said in BAD:
        status, out, err = warren(*words(line), WARREN_URL=broker.url)
        assert (status, out) == (2, ""), (line, status, out, err)
        assert len(err.splitlines()) == 1 and said in err and "Traceback" not in err, (line, err)
        assert err.startswith("warren "), (line, err)


def test_every_verb_says_the_same_as_json(warren: Run, broker: Broker) -> None:
    for line, _ in GOOD:
        status, out, _ = warren(*words(line), "--json", WARREN_URL=broker.url)
        assert status == 0 and isinstance(json.loads(out), dict), line


def test_arguments_keep_their_types(warren: Run, broker: Broker) -> None:
    line = 'declare queue q -a x-max-length=5 -a flag=true -a t=text -a n:="5" -a l:=[1,"a"] --arguments {"f":1.5}'
    assert warren(*words(line), WARREN_URL=broker.url)[0] == 0
    (row,) = json.loads(warren("queues", "q", "--json", WARREN_URL=broker.url)[1])
    assert row["arguments"] == {"x-max-length": 5, "flag": True, "t": "text", "n": "5", "l": [1, "a"], "f": 1.5}


def test_lists_are_tab_separated_in_a_pipe_and_chosen_by_a_pattern(warren: Run, broker: Broker) -> None:
    for name in ("orders", "orders.late", "bids"):
        assert warren("declare", "queue", name, WARREN_URL=broker.url)[0] == 0
    assert warren("bind", "amq.topic", "orders", "a\tb", WARREN_URL=broker.url)[0] == 0
    with Connection(broker.url, connection_name="me") as connection:
        connection.channel().basic_consume("bids")
        shown = {
            what: warren(what, *pattern, WARREN_URL=broker.url)[1].splitlines()
            for what, *pattern in (
                ["queues", "orders*"],
                ["exchanges", "amq.t*"],
                ["bindings", "amq.*"],
                ["connections"],
                ["channels"],
                ["consumers", "b?ds"],
            )
        }
        for what in shown:
            rows = json.loads(warren(what, "--json", WARREN_URL=broker.url)[1])
            assert rows and all(isinstance(row, dict) for row in rows)
    heads = {what: lines[0].split("\t") for what, lines in shown.items()}
    assert heads["queues"] == "NAME TYPE DURABLE READY UNACKED CONSUMERS POLICY ARGUMENTS".split()
    assert [line.split("\t")[0] for line in shown["queues"][1:]] == ["orders", "orders.late"]
    assert [line.split("\t")[0] for line in shown["exchanges"][1:]] == ["amq.topic"]
    assert shown["bindings"][1:] == ["amq.topic\tqueue\torders\ta\\tb\t"]  # a tab in a key is no column
    assert any(line.endswith("\tme") for line in shown["connections"][1:])
    assert [line.split("\t")[0] for line in shown["consumers"][1:]] == ["bids"]
    assert all(len(line.split("\t")) == len(heads[what]) for what, lines in shown.items() for line in lines)


def test_a_password_may_come_from_standard_input(warren: Run, broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("s3cret\n"))
    assert warren("user", "add", "ann", "--tag", "administrator", WARREN_URL=broker.url)[0] == 0
    assert warren("user", "list", "-u", broker.url.replace("guest:guest", "ann:s3cret"))[1] == (
        "NAME\tTAGS\nann\tadministrator\nguest\tadministrator\n"
    )
    assert warren("user", "list", "-u", broker.url.replace("guest:guest", "ann:other"))[0] == 3
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    status, _, err = warren("user", "password", "ann", WARREN_URL=broker.url)
    assert status == 2 and "no password given" in err
    assert warren("user", "tags", "ann", WARREN_URL=broker.url)[0] == 0  # keeps the password
    weak = broker.url.replace("guest:guest", "ann:s3cret")
    assert warren("user", "tags", "ann", "--tag", "management", WARREN_URL=broker.url)[0] == 0
    status, _, err = warren("user", "list", "-u", weak)
    assert (status, err) == (2, "warren user list: user 'ann' may not do this: Not administrator user\n")
    assert warren("permission", "set", "ann", WARREN_URL=broker.url)[0] == 0
    assert warren("get", "q", "-u", weak)[0] == 2
