"""POST /api/whatif: what would have become of the newest messages, answered by the journal's process, and to whom."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pika
import pytest
from typer.testing import CliRunner, Result

pytest.importorskip("pyarrow")

from tests.http.conftest import Api
from tests.support import web
from warrenmq.cli.main import build_app
from warrenmq.testing import Broker

#: tags, and what may be written and read in the vhost /; None: no permissions there
USERS: dict[str, tuple[str, tuple[str, str] | None]] = {
    "shop": ("management", (".*", "^$")),
    "reader": ("management", ("^$", "^all$")),
    "outsider": ("management", None),
    "chief": ("administrator", ("^$", "^$")),
    "worker": ("", ("^$", ".*")),
}
NARROWER = {
    "delete": {"bindings": [{"source": "shop", "destination": "work"}]},
    "put": {"bindings": [{"source": "shop", "destination": "work", "routing_key": "order.0"}]},
}
LETTERS = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "letters"}


def until(question: Callable[[], Any]) -> Any:
    for _ in range(6000):
        found = question()
        if found:
            return found
        time.sleep(0.01)
    raise AssertionError("it did not come about")


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """Twenty messages of guest's to two queues, half of which were taken from one of them; one of shop's that nobody
    gets."""
    folder = tmp_path_factory.mktemp("whatif")
    with Broker(data_dir=folder, journal="on", journal_interval=0.1) as broker, web.Client() as client:
        made = Api(broker, client)
        for name, (tags, permissions) in USERS.items():
            made.put(f"/users/{name}", {"password": name, "tags": tags})
            if permissions is not None:
                write, read = permissions
                made.put(f"/permissions/%2F/{name}", {"configure": "^$", "write": write, "read": read})
        for user, first in (("guest", 0), ("shop", 20)):
            login = pika.PlainCredentials(user, user)
            where = pika.ConnectionParameters(port=broker.port, credentials=login)
            with pika.BlockingConnection(where) as connection:
                channel = connection.channel()
                channel.confirm_delivery()
                if user == "guest":
                    topology(channel)
                for number in range(first, first + 20 if user == "guest" else first + 1):
                    kept = pika.BasicProperties(delivery_mode=2, message_id=f"m{number}")
                    key = f"order.{number % 2}" if user == "guest" else "nobody"
                    channel.basic_publish("shop", key, b"12345", kept)
                    if user == "guest" and number % 2:
                        time.sleep(0.003)  # what-if counts in milliseconds: what came and went in one was taken in time
                        assert channel.basic_get("all", auto_ack=True)[0] is not None
                        time.sleep(0.003)
        until(
            lambda: (
                client.get(f"{broker.http_url}/api/messages?message_id=m20", auth=("guest", "guest"))
                .json()
                .get("items")
            )
        )
        yield made


def topology(channel: Any) -> None:
    channel.exchange_declare("shop", "topic", durable=True)
    for queue, arguments in (("work", {}), ("all", LETTERS), ("letters", {})):
        channel.queue_declare(queue, durable=True, arguments=arguments)
    channel.queue_bind("work", "shop", "order.*")
    channel.queue_bind("all", "shop", "order.#")


def ask(api: Api, asked: Any, user: str = "guest", **more: Any) -> Any:
    answer = api.client.post(f"{api.broker.http_url}/api/whatif", json=asked | more, auth=(user, user))
    assert answer.status_code == 200, answer.text
    return answer.json()


def rows(found: Any) -> set[tuple[Any, ...]]:
    return {
        tuple(row[name] for name in ("routing_key", "queue", "before", "after", "messages", "worse"))
        for row in found["items"]
    }


def test_a_changed_binding_says_which_messages_of_the_last_hour_go_elsewhere(api: Api) -> None:
    found = ask(api, NARROWER)
    assert (found["messages"], found["changed"], found["worse"], found["whole"]) == (21, 10, 0, True)
    assert rows(found) == {("order.1", "work", "there", "absent", 10, False)}
    (row,) = found["items"]
    assert row["example"]["message_id"] == "m1"
    life = api.get(f"/messages/{row['example']['id']}")  # the example can be asked for
    assert life["message_id"] == "m1"
    assert found["since"] <= row["first"] <= row["last"] <= found["until"]


def test_a_new_limit_says_what_it_drops_and_where_the_letters_go(api: Api) -> None:
    policy = {"vhost": "/", "name": "p", "pattern": "^all$", "apply-to": "queues", "definition": {"max-length": 3}}
    found = ask(api, {"put": {"policies": [policy]}})
    by = {(row["routing_key"], row["queue"], row["before"], row["after"]): row["messages"] for row in found["items"]}
    dropped = {key: by[key, "all", "there", "dropped"] for key in ("order.0", "order.1")}
    assert {key: by[key, "letters", "absent", "there"] for key in dropped} == dropped and len(by) == 4
    # m0 and m1 were taken in time, the last three wait
    assert found["worse"] == found["changed"] == sum(dropped.values()) == 15


def test_whole_definitions_are_taken_too(api: Api) -> None:
    after = api.get("/definitions")
    after["bindings"] = [one for one in after["bindings"] if one["destination"] != "work"]
    assert rows(ask(api, {"definitions": after})) == {
        (f"order.{n}", "work", "there", "absent", 10, False) for n in range(2)
    }
    after["exchanges"] = []
    after["bindings"] = []
    found = ask(api, {"definitions": after})
    told = {row["after"] for row in found["items"] if row["queue"] is None}
    assert told == {"refused 404"} and (found["changed"], found["worse"]) == (21, 20)  # one was unroutable before


def test_everybody_is_told_of_what_he_may_see(api: Api) -> None:
    more = {
        "put": {"bindings": [{"source": "shop", "destination": "all", "routing_key": "nobody"}]},
    }
    more["delete"] = NARROWER["delete"]
    published = ("nobody", None, "unroutable", "routed", 1, False)
    arrives = ("nobody", "all", "absent", "there", 1, False)
    leaves = {(f"order.{n}", "work", "there", "absent", 10, False) for n in range(2)}
    wanted: dict[str, tuple[int, set[Any]]] = {
        "guest": (21, {published, arrives, *leaves}),
        "reader": (21, {published, arrives}),
        "shop": (1, {published}),
        "chief": (21, {published}),
        "outsider": (0, set()),
    }
    for user, (messages, told) in wanted.items():
        found = ask(api, more, user)
        assert (found["messages"], rows(found)) == (messages, told), user
        assert found["changed"] == (21 if user == "guest" else len(told) > 0), user
    answer = api.ask("POST", "/whatif", more, user=("worker", "worker"))
    assert answer.status_code == 401


def test_only_messages_of_the_time_are_looked_at_and_only_so_many_rows_told(api: Api) -> None:
    assert ask(api, NARROWER, until="2020-01-01T00:00:00Z")["messages"] == 0
    later = ask(api, NARROWER, since="2100-01-01T00:00:00Z")
    assert (later["messages"], later["since"], later["items"]) == (0, None, [])
    found = ask(api, {"delete": {"queues": [{"name": "work"}]}}, limit=1)
    assert len(found["items"]) == 1 and found["more"] == 1


NONSENSE: dict[str, tuple[Any, str]] = {
    "nothing": ({}, "say what would be otherwise: definitions, or put and delete"),
    "both": ({"definitions": {"queues": []}, "put": {}}, "definitions, or put and delete: one of them"),
    "no definitions": ({"definitions": {"x": 1}}, "not an export of definitions"),
    "a section": ({"put": {"cues": []}}, "put.cues: there are vhosts, users"),
    "a list": ({"put": {"queues": {}}}, "put.queues is no list of objects"),
    "a name": ({"put": {"queues": [{"vhost": "/"}]}}, "put.queues[0] has no 'name'"),
    "gone": ({"delete": {"queues": [{"name": "gone"}]}}, "delete.queues[0] is none of the queues that there are"),
    "ends": ({"put": {"bindings": [{"source": "shop", "destination": "x"}]}}, "has an end that is not defined"),
    "a policy": (
        {"put": {"policies": [{"name": "p", "pattern": "(", "definition": {"max-length": 1}}]}},
        "policy 'p' has no valid pattern",
    ),
    "a member": ({"what": 1}, "'what': what may be said is definitions, put, delete, since, until, limit"),
    "a time": ({"put": {}, "since": "soon"}, "since: 'soon' is not a time such as"),
    "a very long time": ({"put": {}, "since": [1] * 5000}, "since: at most 1000 octets"),
    "very many members": ({f"a{n}": n for n in range(50_000)}, "'a0': what may be said is definitions, put"),
    "a limit": ({"put": {}, "limit": 0}, "limit: expected a whole number from 1 to 1000"),
    "a list of everything": ([], "not_json"),
}


@pytest.mark.parametrize("case", NONSENSE)
def test_what_makes_no_sense_is_said_in_one_line(api: Api, case: str) -> None:
    asked, said = NONSENSE[case]
    answer = api.ask("POST", "/whatif", asked)
    assert answer.status_code == 400 and said in answer.json()["reason"], answer.text
    assert "\n" not in answer.json()["reason"]


def test_without_a_journal_the_answer_says_what_is_missing() -> None:
    with Broker(journal="off") as broker, web.Client() as client:
        answer = Api(broker, client).ask("POST", "/whatif", {"put": {}})
        assert answer.status_code == 503 and "journal" in answer.json()["reason"]


def test_the_question_is_gone_when_it_is_answered(api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ask(api, NARROWER)
    assert not list(tmp_path.iterdir())


def command(api: Api, *given: object) -> Result:
    return CliRunner().invoke(build_app("whatif"), ["whatif", *map(str, given), "--url", api.broker.http_url])


def test_the_command_tells_in_lines_and_by_its_status(api: Api, tmp_path: Path) -> None:
    file = tmp_path / "change.json"
    file.write_text(json.dumps(NARROWER))
    run = partial(command, api, file)
    done = run()
    assert done.exit_code == 0 and ": 10 would fare otherwise, 0 of them worse" in done.stdout, done.output
    line = "10 to exchange 'shop' with key 'order.1': in queue 'work' there → absent, such as m1"
    assert line in done.stdout
    assert run("--any").exit_code == 1 and run("--since", "2h", "--json").stdout.startswith('{"changed":')
    after = api.get("/definitions")
    after["bindings"] = []
    file.write_text(json.dumps(after))
    done = run()
    assert done.exit_code == 1 and "to the publisher routed → unroutable" in done.stdout
    for text, said in (
        ("{", "is not JSON"),
        ("[]", "holds no JSON object"),
        ('{"put": {"x": []}}', "put.x: there are"),
    ):
        file.write_text(text)
        done = run()
        assert done.exit_code == 2 and said in done.stderr and len(done.stderr.splitlines()) == 1
    done = command(api, tmp_path / "none.json")
    assert done.exit_code == 2 and "none.json cannot be read" in done.stderr
