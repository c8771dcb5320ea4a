"""The six RabbitMQ tutorials with Node's amqplib: the programs in tutorials/, each a process of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients.conftest import last_json
from tests.support.brokers import RunningBroker

TUTORIALS = Path(__file__).parent / "tutorials"

EXPECTED: dict[str, object] = {
    "hello_world": ["Hello World!"],
    "work_queues": {
        "held": "task 0",
        "done": [
            ["task 1", False],
            ["task 2", False],
            ["task 3", False],
            ["task 4", False],
            ["task 5", False],
            ["task 0", True],
        ],
    },
    "publish_subscribe": [["info: Hello World!"], ["info: Hello World!"]],
    "routing": {"disk": ["error"], "screen": ["info", "error", "warning"]},
    "topics": {
        "#": ["kern.critical", "kern.info", "auth.critical", "auth.info", "kern"],
        "kern.*": ["kern.critical", "kern.info"],
        "*.critical": ["kern.critical", "auth.critical"],
    },
    "remote_procedure_call": [5, 55, 610],
}


@pytest.mark.parametrize("tutorial", EXPECTED)
def test_the_tutorial_works(broker: RunningBroker, run_node: Callable[..., str], tutorial: str) -> None:
    assert last_json(run_node(TUTORIALS / f"{tutorial}.mjs", broker.url)) == EXPECTED[tutorial]
