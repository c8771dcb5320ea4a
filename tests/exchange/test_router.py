"""The router without a broker, and the explanations of ``warren explain``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from tests.exchange.build import names
from warrenmq.broker.definitions.router import DefinitionsError, Router
from warrenmq.broker.exchange.explain import queues_in, scheduled_in
from warrenmq.cli.explain.command import register
from warrenmq.wire.content import Properties
from warrenmq.wire.replies import AmqpError

DEFINITIONS: dict[str, Any] = {
    "rabbit_version": "3.10.8",
    "vhosts": [{"name": "/"}, {"name": "other"}],
    "policies": [
        {
            "vhost": "/",
            "name": "low",
            "pattern": ".*",
            "apply-to": "all",
            "definition": {"max-length": 5},
            "priority": -1,
        },
        {
            "vhost": "/",
            "name": "unrouted",
            "pattern": "^orders$",
            "apply-to": "exchanges",
            "definition": {"alternate-exchange": "unrouted"},
            "priority": 1,
        },
        {
            "vhost": "/",
            "name": "queues-only",
            "pattern": "^orders$",
            "apply-to": "queues",
            "definition": {"alternate-exchange": "wrong"},
            "priority": 9,
        },
        {
            "vhost": "/",
            "name": "copies",
            "pattern": "^copied$",
            "apply-to": "exchanges",
            "definition": {"extra-destinations": ["lost"]},
            "priority": 2,
        },
    ],
    "exchanges": [
        {"name": "orders", "vhost": "/", "type": "topic", "durable": True, "arguments": {}},
        {"name": "unrouted", "vhost": "/", "type": "fanout", "arguments": {}},
        {"name": "documents", "vhost": "/", "type": "headers", "arguments": {}},
        {"name": "later", "vhost": "/", "type": "x-delayed-message", "arguments": {"x-delayed-type": "direct"}},
        {"name": "copied", "vhost": "/", "type": "direct"},
        {"name": "argued", "vhost": "/", "type": "direct", "arguments": {"alternate-exchange": "gone"}},
        {"name": "spread", "vhost": "/", "type": "x-random"},
        {"name": "hashed", "vhost": "/", "type": "x-consistent-hash", "arguments": {"hash-property": "message_id"}},
    ],
    "queues": [{"name": name, "vhost": "/"} for name in ("eu", "pdf", "lost")] + [{"name": "o", "vhost": "other"}],
    "bindings": [
        {"source": "orders", "vhost": "/", "destination": "eu", "destination_type": "queue", "routing_key": "eu.*"},
        {
            "source": "orders",
            "vhost": "/",
            "destination": "documents",
            "destination_type": "exchange",
            "routing_key": "#.doc",
            "arguments": {},
        },
        {
            "source": "documents",
            "vhost": "/",
            "destination": "pdf",
            "destination_type": "queue",
            "routing_key": "",
            "arguments": {"x-match": "all", "format": "pdf", "pages": 3},
        },
        {"source": "unrouted", "vhost": "/", "destination": "lost", "destination_type": "queue", "routing_key": ""},
        {"source": "", "vhost": "/", "destination": "eu", "destination_type": "queue", "routing_key": "eu"},
        {"source": "later", "vhost": "/", "destination": "eu", "destination_type": "queue", "routing_key": "k"},
        {"source": "spread", "vhost": "/", "destination": "eu", "destination_type": "queue", "routing_key": ""},
        {"source": "spread", "vhost": "/", "destination": "lost", "destination_type": "queue", "routing_key": ""},
        {"source": "hashed", "vhost": "/", "destination": "eu", "destination_type": "queue", "routing_key": "1"},
        {"source": "hashed", "vhost": "/", "destination": "lost", "destination_type": "queue", "routing_key": "1"},
        {"source": "hashed", "vhost": "/", "destination": "orders", "destination_type": "exchange", "routing_key": "1"},
    ],
}


@pytest.fixture(scope="module")
def router() -> Router:
    return Router.from_definitions(DEFINITIONS)


PDF = {"format": "pdf", "pages": 3}


@pytest.mark.parametrize(
    "exchange, key, headers, queues",
    [
        ("orders", "eu.doc", PDF, ["eu", "pdf"]),
        ("orders", "eu.doc", {"format": "pdf"}, ["eu"]),
        ("orders", "us.doc", None, []),
        ("orders", "us", None, ["lost"]),
        ("orders", "us", {"CC": ["eu.x"]}, ["eu"]),
        ("", "pdf", {"BCC": ["lost"]}, ["pdf", "lost"]),
        ("", "o", None, []),
        ("copied", "k", None, ["lost"]),
        ("later", "k", {"x-delay": 0}, ["eu"]),
        ("amq.topic", "k", None, []),
    ],
)
def test_a_message_is_routed_and_explained_from_definitions_alone(
    router: Router, exchange: str, key: str, headers: dict[str, object] | None, queues: list[str]
) -> None:
    assert names(router.route("/", exchange, key, headers).queues) == queues
    assert queues_in(router.explain("/", exchange, key, headers)) == queues


def test_a_delayed_message_is_said_to_wait(router: Router) -> None:
    assert names(router.route("/", "later", "k", {"x-delay": 5}).scheduled) == ["later"]
    assert scheduled_in(router.explain("/", "later", "k", {"x-delay": 5})) == ["later"]


def test_properties_count_where_an_exchange_hashes_them(router: Router) -> None:
    reached = {
        tuple(names(router.route("/", "hashed", "k", None, Properties(message_id=str(n))).visited)) for n in range(50)
    }
    assert len(reached) >= 2
    for n in range(50):
        properties = Properties(message_id=str(n))
        explained = queues_in(router.explain("/", "hashed", "k", None, properties))
        assert explained == names(router.route("/", "hashed", "k", None, properties).queues)


def test_what_the_broker_refuses_the_router_refuses(router: Router) -> None:
    for arguments, text in [
        (("nope", "x", "k", None), "530 NOT_ALLOWED - vhost nope not found"),
        (("/", "nope", "k", None), "404 NOT_FOUND - no exchange 'nope' in vhost '/'"),
        (("other", "orders", "k", None), "404 NOT_FOUND - no exchange 'orders' in vhost 'other'"),
        (
            ("/", "orders", "k", {"CC": "a"}),
            '406 PRECONDITION_FAILED - invalid message: {unacceptable_type_in_header,"CC",longstr}',
        ),
    ]:
        with pytest.raises(AmqpError) as caught:
            router.route(*arguments)
        assert f"{caught.value.code} {caught.value.text}" == text


def test_the_export_of_one_virtual_host_names_none_and_gets_the_one_asked_for() -> None:
    alone = {
        "exchanges": [{"name": "x", "type": "direct"}],
        "queues": [{"name": "q"}],
        "bindings": [{"source": "x", "destination": "q", "destination_type": "queue", "routing_key": "k"}],
    }
    assert names(Router.from_definitions(alone, vhost="mine").route("mine", "x", "k").queues) == ["q"]


@pytest.mark.parametrize(
    "definitions, text",
    [
        ({}, "no definitions in RabbitMQ's export format"),
        ({"exchanges": {}}, "'exchanges' is no list"),
        ({"exchanges": [1]}, "'exchanges' holds something that is no object: 1"),
        ({"exchanges": [{"type": "direct"}]}, "exchange has no 'name'"),
        ({"exchanges": [{"name": "x", "type": "x-nope"}]}, "exchange 'x' in vhost '/': unknown exchange type 'x-nope'"),
        ({"exchanges": [], "policies": [{"name": "p", "pattern": "(", "definition": {}}]}, "'p' has no valid pattern"),
        (
            {"bindings": [{"source": "x", "destination": "q", "destination_type": "queue"}]},
            "the binding from exchange 'x' to queue 'q' in vhost '/' has an end that is not defined",
        ),
        (
            {
                "queues": [{"name": "q"}],
                "bindings": [{"source": "amq.match", "destination": "q", "arguments": {"x-match": "some"}}],
            },
            'Invalid x-match field value <<"some">>',
        ),
    ],
)
def test_definitions_that_make_no_sense_are_refused_in_one_line(definitions: dict[str, Any], text: str) -> None:
    with pytest.raises(DefinitionsError) as caught:
        Router.from_definitions(definitions)
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)


def reasons(router: Router, exchange: str, key: str, headers: dict[str, object] | None = None) -> list[str]:
    return [miss.reason for miss in router.explain("/", exchange, key, headers).missed]


def test_the_reason_of_a_miss_names_the_word_or_header_and_the_nearest_comes_first(router: Router) -> None:
    assert reasons(router, "orders", "eu") == ["the key ends before '*'", "what follows '#' does not fit 'eu'"]
    assert reasons(router, "orders", "eu.a.b")[0] == "the key goes on with 'b'"
    assert "word 1 of the key is 'us', not 'eu'" in reasons(router, "orders", "us.x")
    assert reasons(router, "documents", "", {"format": "pdf", "pages": "3"}) == ["header 'pages' is <<\"3\">>, not 3"]
    assert reasons(router, "documents", "") == ["header 'format' is missing, header 'pages' is missing"]
    assert reasons(router, "later", "other") == ["the key is 'other'"]


def test_a_missing_alternate_a_decorator_and_chance_are_named(router: Router) -> None:
    assert router.explain("/", "argued", "k").missing_alternate == "gone"
    copied = router.explain("/", "copied", "k").reached[0]
    assert (copied.how, copied.note) == ("decorator", "extra-destinations")
    assert router.explain("/", "spread", "k").note == "one of these 2, at random"
    assert router.explain("/", "amq.fanout", "k").note == "nothing is bound here"


# --- the command


@pytest.fixture
def run(tmp_path: Path) -> Any:
    path = tmp_path / "definitions.json"
    path.write_text(json.dumps(DEFINITIONS))
    app = typer.Typer()

    @app.callback()
    def top() -> None:
        """Keep the command's name even though it is the only one."""

    register(app)

    def invoke(*arguments: str) -> tuple[int, str]:
        result = CliRunner().invoke(app, ["explain", *arguments, "--definitions", str(path)], env={"COLUMNS": "200"})
        return result.exit_code, result.output

    return invoke


def test_warren_explain_prints_the_path_as_a_tree(run: Any) -> None:
    code, output = run("orders", "eu.doc", "--header", "format=pdf", "--header", "pages:=3")
    assert code == 0
    assert output.splitlines() == [
        "exchange 'orders' topic, 2 bindings",
        "├── ✓ key 'eu.*' → queue 'eu'",
        "└── ✓ key '#.doc' → exchange 'documents' headers, 1 binding",
        '    └── ✓ key \'\' {"x-match": "all", "format": "pdf", "pages": 3} → queue \'pdf\'',
        "reaches 2 queues: eu, pdf",
    ]


def test_warren_explain_says_why_nothing_matched_and_leaves_with_1(run: Any) -> None:
    code, output = run("documents", "k", "--header", "format=doc")
    assert code == 1
    assert "header 'format' is <<\"doc\">>, not <<\"pdf\">>, header 'pages' is missing" in output
    assert output.splitlines()[-1] == "unroutable: dropped, or returned with 312 NO_ROUTE if mandatory"


@pytest.mark.parametrize(
    "arguments, text",
    [
        (["nope", "k"], "the broker would refuse this: 404 NOT_FOUND - no exchange 'nope' in vhost '/'"),
        (["orders", "k", "--vhost", "nope"], "530 NOT_ALLOWED - vhost nope not found"),
        (["orders", "k", "--header", "format"], "header 'format' is neither name=text nor name:=JSON"),
        (["orders", "k", "--header", "n:=x"], "header 'n' is no JSON"),
        (["orders", "k", "--url", "http://localhost:1"], "either --definitions or --url, not both"),
        (["later", "k", "--header", "x-delay=soon"], "invalid x-delay 'soon'"),
    ],
)
def test_warren_explain_answers_a_wrong_question_with_one_line_and_2(run: Any, arguments: list[str], text: str) -> None:
    code, output = run(*arguments)
    assert code == 2
    assert text in output
    assert len(output.strip().splitlines()) == 1
