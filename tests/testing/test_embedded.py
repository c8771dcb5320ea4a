"""`from warrenmq.testing import Broker`: a real broker inside somebody's test, gone without a trace."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import pika
import pytest

from warrenmq.server.config import SettingsError
from warrenmq.testing import Broker

pytestmark = pytest.mark.pure


def connect(broker: Broker) -> pika.BlockingConnection:
    return pika.BlockingConnection(pika.URLParameters(broker.url))


def test_a_client_talks_to_it_like_to_any_broker() -> None:
    with Broker() as broker, connect(broker) as connection:
        channel = connection.channel()
        channel.queue_declare("orders")
        channel.basic_publish("", "orders", b"one")
        method, _, body = channel.basic_get("orders", auto_ack=True)
        assert method is not None and body == b"one"


def test_it_answers_over_http() -> None:
    with Broker() as broker:
        manager = urllib.request.HTTPPasswordMgrWithDefaultRealm()
        manager.add_password(None, broker.http_url, "guest", "guest")
        opener = urllib.request.build_opener(urllib.request.HTTPBasicAuthHandler(manager))
        overview = json.load(opener.open(f"{broker.http_url}/api/overview"))
        assert overview["node"]


def test_several_run_side_by_side() -> None:
    with Broker() as one, Broker() as two:
        assert one.port != two.port
        with connect(one) as connection:
            connection.channel().queue_declare("only here")
        with connect(two) as connection, pytest.raises(pika.exceptions.ChannelClosedByBroker):
            connection.channel().queue_declare("only here", passive=True)


@pytest.mark.soak
def test_it_is_ready_in_tens_of_milliseconds() -> None:
    with Broker():
        pass  # the first one pays for imports
    times = []
    for _ in range(5):
        started = time.perf_counter()
        with Broker():
            times.append(time.perf_counter() - started)
    assert min(times) < 0.1, times


LEAVES_NOTHING = """
import gc, os, sys, tempfile, threading, urllib.request
import pika
from warrenmq.testing import Broker

def use():
    with Broker() as broker:
        connection = pika.BlockingConnection(pika.URLParameters(broker.url))
        channel = connection.channel()
        channel.queue_declare("q", durable=True)
        channel.confirm_delivery()
        channel.basic_publish("", "q", b"x", pika.BasicProperties(delivery_mode=2))
        urllib.request.urlopen(f"{broker.http_url}/").close()
    del connection, channel
    gc.collect()

def left():
    descriptors = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0
    return descriptors, [thread.name for thread in threading.enumerate()], os.listdir(tempfile.gettempdir())

use()
before = left()
for _ in range(3):
    use()
assert left() == before, (before, left())
"""


def test_it_leaves_no_thread_no_descriptor_and_no_file(tmp_path: Path) -> None:
    """In a process and a folder for temporary files of their own: what others open meanwhile is not counted."""
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", LEAVES_NOTHING], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_it_changes_nothing_of_the_process_it_lives_in() -> None:
    def host() -> list[object]:
        return [
            [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)],
            gc.get_threshold(),
            gc.isenabled(),
            gc.get_freeze_count(),
            type(asyncio.get_event_loop_policy()),
            list(logging.getLogger().handlers),
            logging.getLogger().level,
            logging.getLogger("uvicorn").handlers,
            logging.getLogger("warrenmq").level,
            os.environ.copy(),
            os.getcwd(),
            os.umask(os.umask(0o022)),
            threading.excepthook,
            sys.excepthook,
            list(sys.meta_path),
        ]

    gc.unfreeze()  # what another test of this process froze may go meanwhile, and would be counted
    before = host()
    with Broker() as broker, connect(broker):
        assert host() == before
    assert host() == before


def test_settings_are_those_of_the_broker_and_checked_alike() -> None:
    with Broker(max_message_size=10) as broker, connect(broker) as connection:
        channel = connection.channel()
        channel.queue_declare("q")
        with pytest.raises(pika.exceptions.ChannelClosedByBroker) as closed:
            channel.confirm_delivery()
            channel.basic_publish("", "q", b"eleven octets")
        assert closed.value.reply_code == 406
    with pytest.raises(SettingsError, match="max_message_size"):
        Broker(max_message_size=0).start()
    with pytest.raises(TypeError):
        Broker(no_such_setting=1).start()


def test_durable_things_stay_in_a_folder_that_stays(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path) as broker:
        with connect(broker) as connection:
            channel = connection.channel()
            channel.queue_declare("q", durable=True)
            channel.confirm_delivery()
            channel.basic_publish("", "q", b"kept", pika.BasicProperties(delivery_mode=2))
        broker.restart()
        with connect(broker) as connection:
            assert connection.channel().basic_get("q", auto_ack=True)[2] == b"kept"


def test_a_broker_that_cannot_start_says_why_and_is_gone(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path):
        with pytest.raises(Exception, match="in use by another broker"):
            Broker(data_dir=tmp_path).start()
    with Broker(data_dir=tmp_path):
        pass


def test_stopping_twice_is_fine_and_a_stopped_one_says_so() -> None:
    broker = Broker().start()
    broker.stop()
    broker.stop()
    with pytest.raises(RuntimeError, match="not running"):
        _ = broker.url


def test_the_fixture_gives_a_broker_on_the_virtual_clock(warren_broker: Broker) -> None:
    before = warren_broker.now_ms
    warren_broker.advance(1.5)
    assert warren_broker.now_ms == before + 1500
