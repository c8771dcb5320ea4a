"""GET /api/messages: what became of a message and where it is now, over HTTP, and to whom it is told."""

from __future__ import annotations

import json
import re
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

LETTERS = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "letters"}
PUBLISHER = ("publisher", "publisher")

#: tags, and what may be written and read in the vhost /; None: no permissions there
USERS: dict[str, tuple[str, tuple[str, str] | None]] = {
    "publisher": ("management", (".*", "^$")),
    "reader": ("management", ("^$", "^one$")),
    "undertaker": ("management", ("^$", "^letters$")),
    "both": ("management", ("^$", "^(one|letters)$")),
    "nobody": ("management", (".*", "^other$")),
    "outsider": ("management", None),
    "monitor": ("monitoring", ("^$", "^$")),
    "policymaker": ("policymaker", ("^$", "^$")),
    "chief": ("administrator", ("^$", "^$")),
}


def until(question: Callable[[], Any]) -> Any:
    for _ in range(6000):
        found = question()
        if found:
            return found
        time.sleep(0.01)
    raise AssertionError("it did not come about")


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    folder = tmp_path_factory.mktemp("where")
    with Broker(data_dir=folder, journal="on", journal_interval=0.1) as broker, web.Client() as client:
        made = Api(broker, client)
        for name, (tags, permissions) in USERS.items():
            made.put(f"/users/{name}", {"password": name, "tags": tags})
            if permissions is not None:
                write, read = permissions
                made.put(f"/permissions/%2F/{name}", {"configure": "^$", "write": write, "read": read})
        until(lambda: made.ask("GET", "/messages/1").status_code == 404)  # the journal's process has been started
        yield made


@pytest.fixture(scope="module")
def channel(api: Api) -> Iterator[Any]:
    with pika.BlockingConnection(pika.URLParameters(api.broker.url)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        yield channel


def publish(channel: Any, queue: str, id: str, exchange: str = "", **more: Any) -> None:
    properties = pika.BasicProperties(delivery_mode=2, message_id=id, **more)
    channel.basic_publish(exchange, queue, b"the body of " + id.encode(), properties)


def found(api: Api, query: str, user: str = "guest") -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = api.get(f"/messages?{query}", user=(user, user))["items"]
    return items


def told(api: Api, id: str, last: str) -> dict[str, Any]:
    """The life of a message once the journal tells of this event."""

    def look() -> dict[str, Any] | None:
        for life in found(api, f"message_id={id}"):
            if any(event["event"] == last for event in life["events"]):
                return life
        return None

    life: dict[str, Any] = until(look)
    return life


# -- what is true now


def test_what_waits_says_how_many_are_before_it(api: Api, channel: Any) -> None:
    channel.queue_declare("line", durable=True)
    for number in range(5):
        publish(channel, "line", f"line-{number}")
    life = told(api, "line-3", "enqueued")
    [place] = life["places"]
    assert (place["queue"], place["state"], life["state"]) == ("line", "waiting", "waiting")
    assert (place["now"]["state"], place["now"]["ahead"], place["now"]["messages"]) == ("waiting", 3, 5)
    tag = channel.basic_get("line")[0].delivery_tag
    assert found(api, "message_id=line-3")[0]["places"][0]["now"]["ahead"] == 2
    channel.basic_nack(tag)


def test_what_is_held_says_by_whom_and_since_when_though_the_journal_may_not_know_yet(api: Api, channel: Any) -> None:
    channel.queue_declare("held", durable=True)
    publish(channel, "held", "held-1")
    told(api, "held-1", "enqueued")
    tag = channel.basic_get("held")[0].delivery_tag
    [life] = found(api, "message_id=held-1")
    now = life["places"][0]["now"]
    assert (life["state"], now["state"], now["channel"]) == ("held", "unacked", 1)
    assert "->" in now["connection"] and now["held_ms"] >= 0
    assert [one["id"] for one in found(api, "queue=held&state=held")] == [life["id"]]
    assert found(api, "queue=held&state=waiting") == found(api, "queue=held&state=gone") == []
    channel.basic_ack(tag)
    channel.queue_declare("held", durable=True)  # the ack has been dealt with
    [life] = found(api, "message_id=held-1")
    assert life["state"] == "gone"
    life = told(api, "held-1", "acked")
    assert "now" not in life["places"][0] and life["places"][0]["cause"] == "acked"


def test_what_is_leased_says_under_which_lease_and_until_when(api: Api, channel: Any) -> None:
    channel.queue_declare("leased", durable=True)
    publish(channel, "leased", "leased-1")
    told(api, "leased-1", "enqueued")
    lease = api.ask("POST", "/queues/%2F/leased/leases", {"count": 1, "ttl": 60000}).json()
    [life] = found(api, "message_id=leased-1")
    now = life["places"][0]["now"]
    assert (life["state"], now["state"], now["lease"]) == ("held", "leased", str(lease["id"]))
    assert now["until"].startswith("20")


@pytest.mark.parametrize("durable", [True, False])
def test_what_is_delayed_says_until_when_and_who_may_read_the_exchange_sees_it(
    api: Api, channel: Any, durable: bool
) -> None:
    api.put("/policies/%2F/all", {"pattern": "^later", "apply-to": "exchanges", "definition": {"journal": "all"}})
    name = f"later {durable}"
    arguments = {"x-delayed-type": "direct"}
    channel.exchange_declare(name, "x-delayed-message", durable=durable, arguments=arguments)
    channel.queue_declare("due", durable=True)
    channel.queue_bind("due", name, "due")
    publish(channel, "due", f"{name}-0", name, headers={"x-delay": 3_600_000})
    publish(channel, "due", f"{name}-1", name, headers={"x-delay": 3_600_000})
    life = told(api, f"{name}-1", "enqueued")
    now = life["places"][0]["now"]
    assert (life["state"], now["state"], now["exchange"]) == ("held", "delayed", name)
    assert now["until"].startswith("20")
    lines = run(api, f"{name}-1").stdout.splitlines()
    assert f"waits in delayed exchange '{name}' until it is due" in lines[2]
    assert lines[-1].startswith(f"  now: delayed by exchange '{name}' until 20")
    api.put("/users/waiter", {"password": "waiter", "tags": "management"})
    api.put("/permissions/%2F/waiter", {"configure": "^$", "write": "^$", "read": f"^{name}$"})
    for exchange_is_there in (True, False):
        assert [life["message_id"] for life in found(api, f"message_id={name}-1", "waiter")] == [f"{name}-1"]
        assert [life["message_id"] for life in found(api, f"queue=amq.delayed.{name}", "waiter")] != []
        assert found(api, f"message_id={name}-1", "undertaker") == []
        assert found(api, f"queue=amq.delayed.{name}", "undertaker") == []
        if exchange_is_there:
            channel.exchange_delete(name)
            until(lambda: found(api, f"message_id={name}-1")[0]["state"] == "gone")


def test_what_went_on_to_where_nothing_is_told_of_it_is_not_said_to_be_gone(api: Api, channel: Any) -> None:
    channel.queue_declare("astray", durable=True, arguments={"x-dead-letter-exchange": "no such exchange"})
    channel.queue_declare("beyond", durable=True)
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "beyond"}
    channel.queue_declare("before", durable=True, arguments=arguments)
    for queue in ("before", "astray"):
        channel.basic_publish("", queue, b"", pika.BasicProperties(message_id=f"{queue}-1", delivery_mode=1))
        channel.basic_reject(channel.basic_get(queue)[0].delivery_tag, requeue=False)
    assert told(api, "astray-1", "letter lost")["state"] == "gone"
    life = told(api, "before-1", "rejected_dead_lettered")
    assert (life["state"], life["message_id"], life["properties"]["delivery_mode"]) == ("unknown", "before-1", 1)
    assert channel.queue_declare("beyond", passive=True).method.message_count == 1
    assert "went on from queue 'before'" in run(api, "before-1").stdout.splitlines()[-1]
    assert [life["message_id"] for life in found(api, "queue=before&state=unknown")] == ["before-1"]
    publish(channel, "before", "before-2")
    channel.basic_reject(channel.basic_get("before")[0].delivery_tag, requeue=False)
    assert told(api, "before-2", "rejected_dead_lettered")["state"] == "waiting"


def test_a_transient_message_is_told_where_the_level_says_so(api: Api, channel: Any) -> None:
    api.put("/policies/%2F/told", {"pattern": "^fleeting$", "apply-to": "queues", "definition": {"journal": "all"}})
    channel.queue_declare("fleeting")
    for number in range(2):
        channel.basic_publish("", "fleeting", b"", pika.BasicProperties(message_id=f"fleeting-{number}"))
    life = told(api, "fleeting-1", "enqueued")
    assert (life["state"], life["places"][0]["now"]["ahead"]) == ("waiting", 1)
    channel.basic_get("fleeting", auto_ack=True)
    life = told(api, "fleeting-0", "auto_acked")
    assert [event["event"] for event in life["events"]] == [
        "published",
        "enqueued",
        "confirmed",
        "fetched",
        "auto_acked",
    ]
    assert life["state"] == "gone"
    channel.queue_purge("fleeting")
    assert told(api, "fleeting-1", "purged")["state"] == "gone"


def test_a_queue_that_was_declared_again_does_not_have_the_old_message(api: Api, channel: Any) -> None:
    channel.queue_declare("again", durable=True)
    publish(channel, "again", "again-old")
    told(api, "again-old", "enqueued")
    channel.queue_delete("again")
    channel.queue_declare("again", durable=True)
    publish(channel, "again", "again-new")
    [life] = found(api, "message_id=again-old")
    assert life["state"] == "gone"
    assert told(api, "again-old", "queue deleted")["state"] == "gone"
    assert told(api, "again-new", "enqueued")["state"] == "waiting"


def test_a_message_that_is_redriven_moved_and_copied_stays_one_message(api: Api, channel: Any) -> None:
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "grave"}
    channel.queue_declare("first", durable=True, arguments=arguments)
    for queue in ("grave", "second", "third"):
        channel.queue_declare(queue, durable=True)
    publish(channel, "first", "wanderer")
    channel.basic_nack(channel.basic_get("first")[0].delivery_tag, requeue=False)
    channel.queue_declare("grave", durable=True)  # the nack has been dealt with

    def arrived(queue: str) -> bool:
        return bool(channel.queue_declare(queue, durable=True, passive=True).method.message_count)

    for source, how, body, target in (
        ("grave", "redrive", {}, "first"),
        ("first", "move", {"target": "second"}, "second"),
        ("second", "copy", {"target": "third"}, "third"),
    ):
        assert api.ask("POST", f"/queues/%2F/{source}/{how}", body).status_code == 202
        until(partial(arrived, target))
    until(lambda: "third" in [place["queue"] for life in found(api, "any=wanderer") for place in life["places"]])
    [life] = found(api, "any=wanderer")
    states = [(place["queue"], place["state"]) for place in life["places"]]
    assert {("grave", "gone"), ("second", "waiting"), ("third", "waiting")} <= set(states)
    assert {event["record"] for event in life["events"] if event["event"] == "published"} == {
        life["places"][0]["record"]
    }
    assert found(api, f"id={life['id']}")[0]["events"] == life["events"]


# -- who may know


@pytest.fixture(scope="module")
def buried(api: Api, channel: Any) -> dict[str, Any]:
    """Published by `publisher` to `one`, rejected there, and now among the letters."""
    wordy = {"pattern": "^(one|letters)$", "definition": {"journal": "all+bodies"}, "apply-to": "queues"}
    api.put("/policies/%2F/wordy", wordy)
    channel.queue_declare("letters", durable=True)
    channel.queue_declare("one", durable=True, arguments=LETTERS)
    url = api.broker.url.replace("//guest:guest@", "//publisher:publisher@")
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        publish(connection.channel(), "one", "buried", correlation_id="c-buried", headers={"tenant": "acme"})
        connection.sleep(0)
    tag = until(lambda: channel.basic_get("one")[0]).delivery_tag
    channel.basic_nack(tag, requeue=False)
    return until(lambda: next(iter(found(api, "queue=letters&message_id=buried")), None))  # type: ignore[no-any-return]


FIRST = [("enqueued", "one"), ("fetched", "one"), ("rejected_dead_lettered", "one")]
SECOND = [("written", ""), ("enqueued", "letters")]
PUBLISHED = [("published", "")]

SEEN: dict[str, list[tuple[str, str]]] = {
    "guest": PUBLISHED + FIRST + SECOND,
    "both": PUBLISHED + FIRST + SECOND,
    "reader": PUBLISHED + FIRST,
    "undertaker": SECOND,
    "publisher": PUBLISHED,
    "chief": PUBLISHED + [("written", "")],
    "nobody": [],
    "outsider": [],
    "monitor": [],
    "policymaker": [],
}
CALLS = ["id={id}", "any={id}", "any=buried", "message_id=buried", "correlation_id=c-buried", "header=tenant:acme"]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("user", SEEN)
def test_everybody_sees_the_events_of_queues_that_they_may_read(
    api: Api, buried: dict[str, Any], user: str, call: str
) -> None:
    lives = found(api, call.format(id=buried["id"]), user)
    assert [[(event["event"], event.get("queue", "")) for event in life["events"]] for life in lives] == (
        [SEEN[user]] if SEEN[user] else []
    )
    for life in lives:
        readable = {queue for _, queue in SEEN[user] if queue}
        assert {place["queue"] for place in life["places"]} == readable
        assert ("properties" in life) == (user in ("guest", "both", "reader", "publisher"))


BODY = {"payload": "the body of buried", "payload_encoding": "string"}
HEARD: dict[str, set[str]] = {
    "guest": {"published", "written"},
    "both": {"published", "written"},
    "reader": {"published"},
    "undertaker": {"written"},
}


@pytest.mark.parametrize("user", SEEN)
def test_what_a_message_said_is_told_to_those_who_may_read_its_queue_and_ask_for_it(
    api: Api, buried: dict[str, Any], user: str
) -> None:
    for query in ("any=buried", "queue=one", "queue=letters", "correlation_id=c-buried"):
        for life in found(api, f"{query}&body=true", user):
            said = {event["event"]: event for event in life["events"] if "payload" in event}
            assert set(said) == HEARD.get(user, set())
            assert all(BODY.items() <= event.items() for event in said.values())
        assert "payload" not in str(found(api, query, user))
    one = api.ask("GET", f"/messages/{buried['id']}?body=true", user=(user, user))
    assert one.text.count("the body of buried") == len(HEARD.get(user, set()))


def test_what_a_publish_said_that_reached_no_queue_its_user_and_administrators_may_see(api: Api, channel: Any) -> None:
    api.put("/policies/%2F/topic", {"pattern": "^amq.topic$", "definition": {"journal": "all+bodies"}})
    url = api.broker.url.replace("//guest:guest@", "//publisher:publisher@")
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        publish(connection.channel(), "nowhere", "lost", exchange="amq.topic")
        connection.sleep(0)
    told(api, "lost", "unroutable")
    for user in SEEN:
        lives = found(api, "message_id=lost&body=true", user)
        payloads = [event.get("payload") for life in lives for event in life["events"]]
        assert payloads == (["the body of lost"] if user in ("guest", "publisher", "chief") else []), user


@pytest.mark.parametrize(
    ("queue", "users"), [("one", {"guest", "both", "reader"}), ("letters", {"guest", "both", "undertaker"})]
)
@pytest.mark.parametrize("user", SEEN)
def test_a_queue_is_told_to_those_who_may_read_it(
    api: Api, buried: dict[str, Any], user: str, queue: str, users: set[str]
) -> None:
    ids = [life["id"] for life in found(api, f"queue={queue}", user)]
    assert ids == ([buried["id"]] if user in users else [])


@pytest.mark.parametrize("user", SEEN)
def test_what_one_may_not_see_is_answered_like_what_never_was(api: Api, buried: dict[str, Any], user: str) -> None:
    seen = api.ask("GET", f"/messages/{buried['id']}", user=(user, user))
    never = api.ask("GET", "/messages/123", user=(user, user))
    assert never.status_code == 404
    if SEEN[user]:
        assert seen.status_code == 200 and seen.json()["id"] == buried["id"]
        return
    assert seen.status_code == 404
    assert seen.text.replace(str(buried["id"]), "N") == never.text.replace("123", "N")
    listed = [api.get(f"/messages?{query}", user=(user, user)) for query in ("message_id=buried", "message_id=never")]
    for one in listed:
        one.pop("known_until")  # the journal goes on meanwhile
    assert listed[0] == listed[1]


def test_who_has_no_tag_has_no_answer(api: Api) -> None:
    api.put("/users/plain", {"password": "plain", "tags": ""})
    assert api.ask("GET", "/messages?any=buried", user=("plain", "plain")).status_code == 401
    assert api.ask("GET", "/messages/1", user=("plain", "plain")).status_code == 401


# -- pages and bad questions


def test_pages_follow_one_another_and_what_may_not_be_seen_leaves_no_trace_in_them(api: Api, channel: Any) -> None:
    for queue in ("one", "line"):
        channel.queue_declare(queue, durable=True, arguments=LETTERS if queue == "one" else None)
    for number in range(7):
        publish(channel, "line" if number % 2 else "one", f"page-{number}", correlation_id="page")
    until(lambda: len(found(api, "correlation_id=page")) == 7)

    def pages(user: str) -> list[list[str]]:
        shown = []
        query = "correlation_id=page&limit=2"
        while True:
            page = api.get(f"/messages?{query}", user=(user, user))
            shown.append([life["message_id"] for life in page["items"]])
            if page["next"] is None:
                return shown
            query = f"correlation_id=page&limit=2&before={page['next']}"

    assert [id for page in pages("guest") for id in page] == [f"page-{number}" for number in range(6, -1, -1)]
    assert pages("reader") == [["page-6", "page-4"], ["page-2", "page-0"], []]
    assert pages("nobody") == [[]]


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("", "one of id, message_id, correlation_id, any, header or queue says which messages"),
        ("id=x", "id: 'x' is not a whole number between 0 and"),
        ("id=1&any=1", "id and any: one of them"),
        ("header=tenant", "header: 'tenant' is not name:value"),
        ("queue=q&state=odd", "state: 'odd' is none of waiting, held, unknown, gone"),
        ("queue=q&before=yesterday", "before: 'yesterday' is not what an answer gave as next"),
        ("queue=q&limit=0", "limit: '0' is not a whole number between 1 and 1000"),
        ("queue=q&body=1", "body: '1' is neither true nor false"),
        (f"message_id={'x' * 256}", "message_id: at most 255 octets"),
    ],
)
def test_a_question_that_is_none_says_what_would_be_one(api: Api, query: str, reason: str) -> None:
    answer = api.ask("GET", f"/messages?{query}")
    assert answer.status_code == 400 and answer.json()["reason"].startswith(reason)


@pytest.mark.parametrize("id", ["x", "-1", "9" * 19, "1" * 30])
def test_an_id_that_is_none_says_how_to_ask_otherwise(api: Api, id: str) -> None:
    answer = api.ask("GET", f"/messages/{id}")
    assert answer.status_code == 400 and "ask /api/messages?message_id=" in answer.json()["reason"]


def test_without_a_journal_the_answer_says_so(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path) as broker, web.Client() as client:
        api = Api(broker, client)
        for path in ("/messages?any=x", "/messages/1"):
            answer = api.ask("GET", path)
            assert answer.status_code == 503 and "journal" in answer.json()["reason"]


# -- the command line


def run(api: Api, *arguments: str, user: str = "guest") -> Result:
    url = api.broker.http_url.replace("//", f"//{user}:{user}@")
    return CliRunner().invoke(build_app("where"), ["where", *arguments, "--url", url])


def test_the_command_line_tells_the_life_and_what_is_true_now(api: Api, channel: Any) -> None:
    channel.queue_declare("shown", durable=True)
    for number in range(3):
        publish(channel, "shown", f"shown-{number}", headers={"number": number})
    life = told(api, "shown-2", "confirmed")
    shown = run(api, "shown-2")
    assert shown.exit_code == 0, shown.output
    lines = shown.stdout.splitlines()
    assert lines[0] == f"message {life['id']}, message_id shown-2"
    assert "published by guest to the default exchange with key 'shown', 19 octets, over 127.0.0.1:" in lines[1]
    assert lines[2].endswith("entered queue 'shown' at position 3, by its name")
    assert lines[3].endswith("confirmed to its publisher")
    assert re.fullmatch(r"  now: waiting in queue 'shown' for \S+, 2 of 3 messages before it", lines[4])
    for arguments in ([str(life["id"])], ["--header", "number=2"], ["--message-id", "shown-2", "--queue", "shown"]):
        assert json.loads(run(api, *arguments, "--json").stdout)["events"] == life["events"]
    channel.basic_get("shown")
    lines = run(api, "shown-0").stdout.splitlines()
    assert re.fullmatch(r"  now: held in queue 'shown' \(unacked\) for \S+: basic.get on 127.0.0.1.* \(1\)", lines[-1])
    ids = [json.loads(line)["message_id"] for line in run(api, "--queue", "shown", "--json").stdout.splitlines()]
    assert sorted(ids) == ["shown-0", "shown-1", "shown-2"]  # by when something happened last, as far as it is told
    assert len(run(api, "--queue", "shown", "--json", "--limit", "2").stdout.splitlines()) == 2
    assert len(run(api, "--queue", "shown", "--json", "--since", "1h").stdout.splitlines()) == 3
    assert run(api, "--queue", "shown", "--json", "--until", "1h").exit_code == 1


def test_the_command_line_shows_what_it_said_and_no_control_characters(
    api: Api, channel: Any, buried: dict[str, Any]
) -> None:
    assert "the body of" not in run(api, "buried").stdout
    assert "    body:\n      the body of buried\n" in run(api, "buried", "--body").stdout
    for id, body in (("escape", b"two\nlines\x1b[2J"), ("octets", b"\xff\x00")):
        properties = pika.BasicProperties(delivery_mode=2, message_id=id)
        channel.basic_publish("", "letters", body, properties)
        told(api, id, "enqueued")
    assert "      two\n      lines\\x1b[2J\n" in run(api, "escape", "--body").stdout
    assert "    body (base64):\n      /wA=\n" in run(api, "octets", "--body").stdout
    channel.queue_purge("letters")


def test_the_command_line_says_in_one_line_what_is_wrong(api: Api) -> None:
    never = run(api, "never-was")
    assert never.exit_code == 1 and never.stderr.startswith("No such message in the journal, which tells what happened")
    wrong = run(api, "x", "--state", "odd")
    assert (wrong.exit_code, wrong.stderr) == (
        2,
        "warren where: state: 'odd' is none of waiting, held, unknown, gone\n",
    )
    nobody = run(api, "x", user="missing")
    assert nobody.exit_code == 3 and nobody.stderr.endswith(" refused the login: Login failed\n")
