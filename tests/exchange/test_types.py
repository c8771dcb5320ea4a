"""Which exchange types there are, and what they refuse, in RabbitMQ 3.10's words."""

from __future__ import annotations

import pytest

from tests.exchange.build import Arguments, bind, exchange, queue
from warrenmq.broker.exchange.types import TYPES
from warrenmq.wire.fields import Field
from warrenmq.wire.replies import AmqpError


@pytest.mark.parametrize("type", [each for each in TYPES if each != "x-delayed-message"])
def test_every_listed_type_can_be_declared_bound_and_unbound_and_inside_a_delayed_exchange(type: str) -> None:
    for made in (exchange("x", type), exchange("x", "x-delayed-message", {"x-delayed-type": type})):
        binding = bind(made, queue("q"), "1")
        made.matcher.unbind(binding)


UNKNOWN_TYPES = [("x-nope", "unknown"), ("x-modulus-hash", "unknown"), ("foo", "invalid"), ("", "invalid")]


@pytest.mark.parametrize("name, word", UNKNOWN_TYPES)
def test_an_unknown_type_is_a_connection_error_with_the_words_of_3_10(name: str, word: str) -> None:
    with pytest.raises(AmqpError) as caught:
        exchange("x", name)
    assert (caught.value.code, caught.value.explanation) == (503, f"{word} exchange type '{name}'")


MUST_EXIST = "Invalid argument, 'x-delayed-type' must be an existing exchange type"


@pytest.mark.parametrize(
    "arguments, text",
    [
        ({}, MUST_EXIST),
        ({"x-delayed-type": 1}, MUST_EXIST),
        ({"x-delayed-type": b"direct"}, MUST_EXIST),
        (
            {"x-delayed-type": "x-delayed-message"},
            "Invalid argument, 'x-delayed-message' can't be used for 'x-delayed-type'",
        ),
        ({"x-delayed-type": "nope"}, "unknown exchange type 'nope'"),
        ({"x-delay-type": "nope"}, "unknown exchange type 'nope'"),
    ],
)
def test_a_delayed_exchange_needs_a_known_type_inside(arguments: Arguments, text: str) -> None:
    with pytest.raises(AmqpError) as caught:
        exchange("x", "x-delayed-message", arguments)
    code = 503 if text.startswith("unknown") else 406
    assert (caught.value.code, caught.value.explanation) == (code, text)


def test_the_misspelt_x_delay_type_is_taken_but_the_right_spelling_wins() -> None:
    exchange("x", "x-delayed-message", {"x-delay-type": "topic"})
    exchange("x", "x-delayed-message", {"x-delay-type": "nope", "x-delayed-type": "topic"})


BAD_HASH_ARGUMENTS: list[tuple[Arguments, int, str]] = [
    ({"hash-header": "h", "hash-property": "foo"}, 406, "hash-header and hash-property are mutually exclusive"),
    ({"hash-property": "app_id"}, 406, "Unsupported property: app_id"),
    ({"hash-header": 1}, 541, ""),
    ({"hash-property": True}, 541, ""),
]


@pytest.mark.parametrize("arguments, code, text", BAD_HASH_ARGUMENTS)
def test_a_consistent_hash_exchange_refuses_arguments_it_cannot_hash_on(
    arguments: Arguments, code: int, text: str
) -> None:
    with pytest.raises(AmqpError) as caught:
        exchange("x", "x-consistent-hash", arguments)
    assert (caught.value.code, caught.value.explanation) == (code, text)
    with pytest.raises(AmqpError):
        exchange("x", "x-delayed-message", {"x-delayed-type": "x-consistent-hash", **arguments})


GOOD_WEIGHTS = ["1", "+1", "007", "10", "123456789012345678901234567890"]


@pytest.mark.parametrize("key", GOOD_WEIGHTS)
def test_a_weight_may_be_any_positive_decimal(key: str) -> None:
    bind(exchange("x", "x-consistent-hash"), queue("q"), key)


BAD_WEIGHTS: list[tuple[str, str]] = [
    ("abc", 'must be an integer: <<"abc">>'),
    ("1.5", 'must be an integer: <<"1.5">>'),
    (" 1", 'must be an integer: <<" 1">>'),
    ("", "must be an integer: <<>>"),
    ("+", 'must be an integer: <<"+">>'),
    ("1_0", 'must be an integer: <<"1_0">>'),
    ("٣", 'must be an integer: <<"٣">>'),
    ("0", "must be greater than 0"),
    ("-1", "must be greater than 0"),
]


@pytest.mark.parametrize("key, text", BAD_WEIGHTS)
def test_a_weight_that_is_none_is_refused(key: str, text: str) -> None:
    for type, arguments in (("x-consistent-hash", {}), ("x-delayed-message", {"x-delayed-type": "x-consistent-hash"})):
        with pytest.raises(AmqpError) as caught:
            bind(exchange("x", type, arguments), queue("q"), key)
        assert (caught.value.code, caught.value.explanation) == (406, "The binding key " + text)


BAD_X_MATCH: list[tuple[object, str]] = [
    ("foo", 'value <<"foo">>'),
    ("ALL", 'value <<"ALL">>'),
    ("", "value <<>>"),
    ("é", 'value <<"é">>'),
    ('a"b\\\n', 'value <<"a\\"b\\\\\\n">>'),
    ("a\x01b", "value <<97,1,98>>"),
    (Field("S", b"a\xff"), 'value <<"a\udcff">>'),
    ("À", "value <<195,128>>"),
    (Field("I", 1), "type signedint (value 1)"),
    (Field("l", 1 << 40), "type long (value 1099511627776)"),
    (True, "type bool (value true)"),
    (None, "type void (value undefined)"),
    ({}, "type table (value [])"),
    ({"a": Field("I", 1)}, 'type table (value [{<<"a">>,signedint,1}])'),
    (["a"], 'type array (value [{longstr,<<"a">>}])'),
    (1.5, "type double (value 1.5)"),
    (1e100, "type double (value 1.0e100)"),
    (1e22, "type double (value 1.0e22)"),
    (123456789.0, "type double (value 123456789.0)"),
    (b"abc", 'type binary (value <<"abc">>)'),
    (Field("T", 5), "type timestamp (value 5)"),
]


@pytest.mark.parametrize("value, text", BAD_X_MATCH)
def test_a_bad_x_match_is_refused_and_shown_as_rabbitmq_prints_it(value: object, text: str) -> None:
    with pytest.raises(AmqpError) as caught:
        bind(exchange("x", "headers"), queue("q"), "", {"x-match": value})
    expected = "all, any, all-with-x, or any-with-x" if text.startswith("value") else "longstr"
    assert caught.value.code == 406
    assert caught.value.explanation == f"Invalid x-match field {text}; expected {expected}"
