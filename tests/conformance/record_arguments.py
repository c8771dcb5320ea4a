"""Writes down what RabbitMQ 3.10 says to every queue argument:  python -m tests.conformance.record_arguments"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from tests.conformance.arguments import (
    KINDS,
    again_answers,
    consumer_answers,
    flag_answers,
    order_answers,
    text_answers,
    value_answers,
)
from tests.support.brokers import SHARED_PLUGINS, RunningBroker, start_rabbitmq

RECORDED = Path(__file__).parent / "recorded" / "arguments.json"


def grouped(answers: dict[str, str]) -> dict[str, list[str]]:
    """{answer: the questions}, as most questions share theirs."""
    groups: dict[str, list[str]] = {}
    for question, answer in answers.items():
        groups.setdefault(answer, []).append(question)
    return groups


def record(broker: RunningBroker) -> None:
    found: dict[str, Any] = {
        kind: {
            "values": {argument: grouped(each) for argument, each in value_answers(broker, kind).items()},
            "consumers": {argument: grouped(each) for argument, each in consumer_answers(broker, kind).items()},
            "order": order_answers(broker, kind),
            "again with none": again_answers(broker, kind, False),
            "again with others": again_answers(broker, kind, True),
            "flags": grouped(flag_answers(broker, kind)),
        }
        for kind in KINDS
    }
    found["texts"] = text_answers(broker)
    RECORDED.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    if "ORACLE_PORT" in os.environ:
        record(RunningBroker("rabbitmq", int(os.environ["ORACLE_PORT"]), 0, Path("."), None))  # type: ignore[arg-type]
        sys.exit()
    with start_rabbitmq(SHARED_PLUGINS) as private:
        record(private)
