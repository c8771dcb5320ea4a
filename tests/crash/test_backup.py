"""`warren backup`: a copy made while the broker works, on which another broker starts with everything confirmed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from warrenmq.client import Connection, Properties
from warrenmq.testing import Broker

PERSISTENT = Properties(delivery_mode=2)


def backup(broker: Broker, folder: Path) -> subprocess.CompletedProcess[str]:
    url = broker.http_url.replace("http://", "http://guest:guest@")
    command = [sys.executable, "-m", "warrenmq", "backup", str(folder), "--url", url]
    return subprocess.run(command, capture_output=True, text=True)


def bodies(broker: Broker) -> list[bytes]:
    with Connection(broker.url) as connection:
        channel = connection.channel()
        found = []
        while (message := channel.basic_get("q", no_ack=True)) is not None:
            found.append(message.body)
        return found


def test_a_backup_holds_what_was_confirmed_and_a_broker_starts_on_it(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path / "data") as broker:
        with Connection(broker.url) as connection:
            channel = connection.channel()
            channel.queue_declare("q", durable=True)
            channel.confirm_select()
            channel.publish_many("", "q", [b"%d" % i for i in range(500)], PERSISTENT)
            assert channel.wait_for_confirms(60) == []
            made = backup(broker, tmp_path / "copy")
            assert made.returncode == 0, made.stderr
            assert "--data-dir" in made.stdout
            channel.publish_many("", "q", [b"later"], PERSISTENT)
            channel.wait_for_confirms(60)
    with Broker(data_dir=tmp_path / "copy") as restored:
        assert bodies(restored) == [b"%d" % i for i in range(500)]


def test_a_folder_that_is_in_use_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("precious")
    with Broker(data_dir=tmp_path / "data") as broker:
        refused = backup(broker, tmp_path / "full")
    assert refused.returncode == 2
    assert "a backup goes to a folder of its own" in refused.stderr
    assert (tmp_path / "full" / "mine").read_text() == "precious"
