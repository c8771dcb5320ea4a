"""The transcripts of the confirms notes, printed by examples/confirms and asserted in order."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from tests.support.brokers import RunningBroker

EXAMPLES = Path(__file__).parents[2] / "examples" / "confirms"

CONNECTED = "Consumer connected, awaiting for messages"
PUBLISHER = "Publisher connected"
PUBLISHING = "Publisher about to publish message"
ACKED = "Message acked on publisher side"
RETURNED = "Message returned back to publisher"
WORKING = "Consumer received message, working..."
PROCESSED = "Consumer processed message"

Transcript = list[tuple[datetime, str]]
Play = Callable[[str, float], tuple[Transcript, str]]


@pytest.fixture(params=["pika", "amqplib"])
def play(request: pytest.FixtureRequest, broker: RunningBroker) -> Play:
    """Plays a scene with one of the clients: its lines with their times, and the whole output."""

    def run(scene: str, work: float) -> tuple[Transcript, str]:
        if request.param == "amqplib":
            node = request.getfixturevalue("run_node")
            output = node(EXAMPLES / "confirms_amqplib.js", scene, broker.url, str(work), timeout=120)
        else:
            done = subprocess.run(
                [sys.executable, str(EXAMPLES / "confirms_pika.py"), scene, "--url", broker.url, "--work", str(work)],
                capture_output=True,
                text=True,
                timeout=120,
            )
            assert done.returncode == 0, done.stdout + done.stderr
            output = done.stdout
        lines = re.findall(r"^\[([\d/]+ [\d:.]+)\] \[(?:LOG|ERROR)\] +([^{\n]*)", output, re.MULTILINE)
        return [(datetime.strptime(stamp, "%d/%m/%Y %H:%M:%S.%f"), text.strip()) for stamp, text in lines], output

    return run


def texts(transcript: Transcript) -> list[str]:
    return [text for _, text in transcript]


def test_a_consumer_at_work_does_not_delay_the_ack_of_a_transient_message(play: Play) -> None:
    """An ack that waited for the consumer would be last however long the work is; a slow machine's is so only once."""
    for work in (1, 10, 40):
        transcript, _ = play("transient", work)
        if texts(transcript)[-1] == PROCESSED:
            break
    assert texts(transcript)[:3] == [CONNECTED, PUBLISHER, PUBLISHING]
    # the ack and the delivery go to two connections: either may be first, both before the work is done
    assert set(texts(transcript)[3:5]) == {ACKED, WORKING}
    assert texts(transcript)[5:] == [PROCESSED]
    when = {text: time for time, text in transcript}
    assert (when[PROCESSED] - when[WORKING]).total_seconds() > work * 0.8


def test_an_unroutable_message_that_is_not_mandatory_is_acked_and_nobody_learns_more(play: Play) -> None:
    transcript, _ = play("unroutable", 0)
    assert texts(transcript) == [CONNECTED, PUBLISHER, PUBLISHING, ACKED]


def test_an_unroutable_mandatory_message_is_returned_whole_strictly_before_its_ack(play: Play) -> None:
    transcript, output = play("mandatory", 0)
    assert [text.split(" 312")[0] for text in texts(transcript)] == [CONNECTED, PUBLISHER, PUBLISHING, RETURNED, ACKED]
    if "properties={" in output:  # pika
        assert (
            "312 NO_ROUTE exchange=company.e.whatever-exchange routing_key=whatever.b.b "
            "properties={'headers': {}} content=b'test'"
        ) in output
        return
    for line in (
        "replyCode: 312",
        "replyText: 'NO_ROUTE'",
        "exchange: 'company.e.whatever-exchange'",
        "routingKey: 'whatever.b.b'",
        "headers: {}",
        "content: <Buffer 74 65 73 74>",
    ):
        assert line in output
    properties = output.split("properties: {")[1].split("content:")[0]
    assert re.findall(r"(\w+): undefined", properties) == [
        "contentType",
        "contentEncoding",
        "deliveryMode",
        "priority",
        "correlationId",
        "replyTo",
        "expiration",
        "messageId",
        "timestamp",
        "type",
        "userId",
        "appId",
        "clusterId",
    ]


def test_a_persistent_message_is_acked_once(play: Play) -> None:
    transcript, _ = play("persistent", 0.2)
    assert texts(transcript).count(ACKED) == 1
    assert set(texts(transcript)) == {CONNECTED, PUBLISHER, PUBLISHING, ACKED, WORKING, PROCESSED}
