"""Every argument of a queue, with values of every type, for every kind of queue: taken or refused as RabbitMQ does.

`recorded/arguments.json` is what RabbitMQ 3.10 said (written by record_arguments.py). Warren is asked everything;
the oracle, which takes a minute for that, is asked again with a few of the values.
"""

from __future__ import annotations

import json

import pytest

from tests.conformance.arguments import (
    ARGUMENTS,
    KINDS,
    NEVER,
    VALUES,
    again_answers,
    consumer_answers,
    flag_answers,
    order_answers,
    text_answers,
    value_answers,
)
from tests.conformance.record_arguments import RECORDED
from tests.support.brokers import RunningBroker

ANSWERS = json.loads(RECORDED.read_text())
SOME_VALUES = ("zero", "huge", "true", "an empty text")
CRASH = "connection 541 INTERNAL_ERROR"


def ungrouped(groups: dict[str, list[str]]) -> dict[str, str]:
    return {question: answer for answer, questions in groups.items() for question in questions}


def recorded_values(kind: str) -> dict[tuple[str, str], str]:
    """{(argument, value): answer}"""
    return {
        (argument, value): answer
        for argument, groups in ANSWERS[kind]["values"].items()
        for value, answer in ungrouped(groups).items()
    }


def given_values(broker: RunningBroker, kind: str, values: tuple[str, ...]) -> dict[tuple[str, str], str]:
    return {
        (argument, value): answer
        for argument, answers in value_answers(broker, kind, values).items()
        for value, answer in answers.items()
    }


def crashes(answer: str) -> bool:
    return answer in (CRASH, NEVER)


@pytest.mark.parametrize("kind", KINDS)
def test_a_value_is_taken_or_refused_as_by_rabbitmq(warren: RunningBroker, kind: str) -> None:
    expected = {each: answer for each, answer in recorded_values(kind).items() if not crashes(answer)}
    given = given_values(warren, kind, tuple(VALUES))
    assert {each: given[each] for each in expected} == expected


@pytest.mark.parametrize("kind", KINDS)
def test_a_value_that_rabbitmq_dies_of_is_refused_and_named(warren: RunningBroker, kind: str) -> None:
    fatal = [each for each, answer in recorded_values(kind).items() if crashes(answer)]
    assert {argument for argument, _ in fatal} == {
        "classic": {"x-queue-master-locator"},
        "quorum": set(),
        "stream": {"x-max-age"},
    }[kind]
    given = given_values(warren, kind, tuple({value for _, value in fatal}))
    for argument, value in fatal:
        assert given[argument, value].startswith(f"406 PRECONDITION_FAILED - invalid arg '{argument}'"), value


@pytest.mark.parametrize("kind", KINDS)
def test_rabbitmq_still_says_so(rabbitmq: RunningBroker, kind: str) -> None:
    expected = recorded_values(kind)
    assert {argument for argument, _ in expected} == set(ARGUMENTS)
    assert {value for _, value in expected} == set(VALUES)
    given = given_values(rabbitmq, kind, SOME_VALUES)
    assert given == {each: expected[each] for each in given}


@pytest.mark.parametrize("kind", KINDS)
def test_a_consumers_argument_is_taken_or_refused_as_by_rabbitmq(broker: RunningBroker, kind: str) -> None:
    given = consumer_answers(broker, kind)
    for argument, groups in ANSWERS[kind]["consumers"].items():
        expected = {value: answer for value, answer in ungrouped(groups).items() if not crashes(answer)}
        assert {value: given[argument][value] for value in expected} == expected, argument


def test_a_consumers_argument_that_rabbitmq_dies_of_is_refused_and_named(warren: RunningBroker) -> None:
    given = consumer_answers(warren, "stream")["x-stream-offset"]
    fatal = [
        value
        for value, answer in ungrouped(ANSWERS["stream"]["consumers"]["x-stream-offset"]).items()
        if crashes(answer)
    ]
    assert len(fatal) > 10
    for value in fatal:
        assert given[value].startswith("406 PRECONDITION_FAILED - invalid arg 'x-stream-offset'"), value
        assert "invalid_stream_offset_arg" in given[value]


@pytest.mark.parametrize("kind", KINDS)
def test_of_many_wrong_arguments_the_same_one_is_named(broker: RunningBroker, kind: str) -> None:
    assert order_answers(broker, kind) == ANSWERS[kind]["order"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_queue_declared_again_is_compared_in_the_same_order(broker: RunningBroker, kind: str) -> None:
    assert again_answers(broker, kind, False) == ANSWERS[kind]["again with none"]
    assert again_answers(broker, kind, True) == ANSWERS[kind]["again with others"]


def test_values_read_alike_in_texts(broker: RunningBroker) -> None:
    assert text_answers(broker) == ANSWERS["texts"]


@pytest.mark.parametrize("kind", KINDS)
def test_flags_and_arguments_are_looked_at_in_the_same_order(broker: RunningBroker, kind: str) -> None:
    assert flag_answers(broker, kind) == ungrouped(ANSWERS[kind]["flags"])
