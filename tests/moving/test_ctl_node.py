"""`warren ctl` about the node itself: what has no column to compare with RabbitMQ's, and what it changes."""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pika
import pytest

from tests.limits.authority import Authority
from tests.moving.ctl_recording import VERBS as REAL_VERBS
from warrenmq.cli.ctl import command as ctl
from warrenmq.cli.ctl.absent import ABSENT
from warrenmq.cli.ctl.verbs import VERBS
from warrenmq.testing import Broker

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    log = tmp_path_factory.mktemp("log") / "warrenmq.log"
    log.write_text("first\nsecond\nthird\n")
    with Broker(log_file=str(log), default_pass="guest") as running:
        yield running


@pytest.fixture
def run(broker: Broker, capsys: pytest.CaptureFixture[str]) -> Run:
    url = broker.http_url.replace("http://", "http://guest:guest@")

    def run(*arguments: str) -> tuple[int, str, str]:
        status = ctl.main(["-q", *arguments, "--url", url])
        out = capsys.readouterr()
        return status, out.out, out.err

    return run


def test_every_verb_of_the_real_tools_is_there_or_says_what_to_use_instead() -> None:
    real = {verb for verbs in json.loads(REAL_VERBS.read_text()).values() for verb in verbs} - {"help"}
    assert real - set(VERBS) - set(ABSENT) == set()
    assert not set(VERBS) & set(ABSENT)


def test_the_status_names_process_folder_log_and_listeners(broker: Broker, run: Run) -> None:
    status, text, _ = run("status")
    assert status == 0
    for heading in (
        "Runtime",
        "Data directory",
        "Log file(s)",
        "Alarms",
        "Memory",
        "File Descriptors",
        "Free Disk Space",
        "Totals",
        "Listeners",
    ):
        assert f"\n{heading}\n" in "\n" + text
    assert f"OS PID: {os.getpid()}\n" in text and f"port: {broker.port}, protocol: amqp" in text
    assert "mb\n" in run("status", "--unit", "mb")[1]
    assert run("status", "--unit", "yards")[0] == 64


def test_the_settings_are_shown_without_the_password(run: Run) -> None:
    status, text, _ = run("environment")
    assert status == 0 and "heartbeat" in text
    shown = json.loads(run("environment", "--formatter", "json")[1])["warren"]
    assert shown["heartbeat"] == 60 and shown["default_pass"] == "(hidden)"


def test_a_report_has_everything_in_one(broker: Broker, run: Run) -> None:
    status, text, _ = run("report")
    assert status == 0
    for title in (
        "Status of node",
        "Cluster status of node",
        "Application environment",
        "Listing connections",
        "Listing users",
        "Listing queues for vhost /",
        'Listing policies for vhost "/"',
    ):
        assert title in text


def test_the_log_is_found_and_its_end_shown(run: Run) -> None:
    status, path, _ = run("log_location")
    assert status == 0 and Path(path.strip()).name == "warrenmq.log"
    assert run("log_tail", "--number", "2") == (0, "second\nthird\n", "")
    assert run("log_tail_stream", "--duration", "0") == (0, "", "")
    assert run("log_tail", "-N", "x")[0] == 64


def test_a_log_on_standard_error_is_not_looked_for_in_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    with Broker() as other:
        url = other.http_url.replace("http://", "http://guest:guest@")
        assert ctl.main(["-q", "log_location", "--url", url]) == 0
        assert ctl.main(["-q", "log_tail", "--url", url]) == 69
    out, err = capsys.readouterr()
    assert out == "<stderr>\n" and "journalctl" in err


def test_the_log_level_changes_while_it_runs(run: Run) -> None:
    logger = logging.getLogger("warrenmq")
    before = logger.level
    try:
        assert run("set_log_level", "error")[0] == 0
        assert logger.level == logging.ERROR
        assert run("set_log_level", "loud")[0] == 69
    finally:
        logger.setLevel(before)


def test_suspended_listeners_keep_the_clients_that_are_there_and_take_no_new_ones(broker: Broker, run: Run) -> None:
    with pika.BlockingConnection(pika.ConnectionParameters(port=broker.port)) as connection:
        channel = connection.channel()
        assert run("suspend_listeners")[0] == 0
        assert run("check_running")[0] == 69
        channel.queue_declare("still-served", auto_delete=True)
        with pytest.raises(pika.exceptions.AMQPConnectionError):
            pika.BlockingConnection(pika.ConnectionParameters(port=broker.port))
        assert run("resume_listeners")[0] == 0
    pika.BlockingConnection(pika.ConnectionParameters(port=broker.port)).close()


def test_the_disk_limit_may_follow_the_memory(run: Run) -> None:
    assert run("set_disk_free_limit", "mem_relative", "0.0001")[0] == 0
    limit = json.loads(run("status", "--formatter", "json")[1])["disk_free_limit"]
    assert 0 < limit < 1_000_000_000
    assert run("set_disk_free_limit", "1MB")[0] == 0


def test_wait_takes_a_file_with_a_process_that_serves_and_fails_with_one_that_ended(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "pid"
    file.write_text(f"{os.getpid()}\n")
    assert run("wait", str(file)) == (0, "", "")
    file.write_text(json.dumps({"pid": os.getpid()}))  # Warren's ready file
    assert run("wait", str(file)) == (0, "", "")
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert run("wait", "--pid", str(ended.pid))[0] == 69


def test_memory_is_told_in_the_unit_asked_for(run: Run) -> None:
    assert run("memory_breakdown", "--unit", "mb")[1].endswith(" mb (100.0%)\n")
    assert run("memory_breakdown", "--unit", "yards")[0] == 64


def test_what_the_runtime_and_the_machine_offer_is_listed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARREN_CTL_URL", "http://x")
    assert "WARREN_CTL_URL=http://x\n" in run("os_env")[1]
    assert run("erlang_version")[1].startswith("Python 3.")
    assert "sha256" in run("list_hashes")[1]
    assert "TLS_AES_256_GCM_SHA384" in run("cipher_suites")[1]
    assert run("tls_versions")[1] == "tlsv1.3\ntlsv1.2\n"
    assert run("resolve_hostname", "localhost", "--address-family", "appletalk")[0] == 64


def test_a_hashed_password_can_be_given_to_a_user(run: Run) -> None:
    status, hashed, _ = run("hash_password", "secret")
    assert status == 0 and len(hashed.strip()) == 48


def test_a_vhost_added_here_lets_in_nobody_as_with_rabbitmqctl(run: Run) -> None:
    assert run("add_vhost", "empty")[0] == 0
    assert run("list_permissions", "-p", "empty") == (0, "", "")


def test_a_password_may_come_from_standard_input(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("from-input\n"))
    assert run("add_user", "typed")[0] == 0
    assert run("authenticate_user", "typed", "from-input") == (0, "Success\n", "")
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert run("authenticate_user", "typed")[0] == 70


def test_help_tells_of_one_verb_or_of_all(run: Run) -> None:
    assert run("help", "add_user") == run("add_user", "--help") == (0, "warren ctl add_user USER [PASSWORD]\n", "")
    assert run("help", "join_cluster")[0] == 64
    status, text, _ = run("help")
    assert status == 0 and all(f"   {verb}" in text for verb in VERBS)
    assert ctl.main([]) == 64


def test_an_unknown_formatter_or_option_is_refused_before_anything_is_done(run: Run) -> None:
    assert run("add_user", "kept", "secret")[0] == 0
    assert run("delete_user", "kept", "--formatter", "erlang")[0] == 64
    assert run("delete_user", "kept", "--if-empty")[0] == 64
    assert run("delete_user", "kept") == (0, "", "")


@pytest.mark.parametrize(
    ("line", "status", "said"),
    [
        ("delete_user annabell", 67, 'User "annabell" does not exist (did you mean annabel?)'),
        ("list_user_permissions anabel", 69, 'User "anabel" does not exist (did you mean annabel?)'),
        ("delete_vhost shpo", 65, "Virtual host 'shpo' does not exist (did you mean shop?)"),
        ("purge_queue -p shop order", 69, "Queue not found (did you mean orders?)"),
        ("list_queues name messags", 64, "Info key(s) messags are not supported (did you mean messages?)"),
        ("list_queues --formater csv", 64, "--formater : (did you mean --formatter?)"),
        ('set_policy p .* {"max-lenght":1}', 69, "no policy settings: max-lenght (did you mean max-length?)"),
        ('set_user_limits annabel {"max-conections":1}', 69, "max-conections (did you mean max-connections?)"),
        ("set_permissions annabel ( .* .*", 69, "'(' is no regular expression: missing )"),
        ('set_policy p ( {"max-length":1}', 69, "is invalid: missing )"),
        ('set_policy p .* {"max-length":"x"}', 69, "'x' is not a valid maximum length"),
        ("set_parameter a b c", 69, "this is no JSON"),
        ("delete_user somebody", 67, 'User "somebody" does not exist\n'),
    ],
)
def test_what_is_wrong_is_said_without_erlang_and_with_the_name_that_was_meant(
    line: str, status: int, said: str, broker: Broker, run: Run
) -> None:
    run("add_user", "annabel", "secret")
    run("add_vhost", "shop")
    run("set_permissions", "-p", "shop", "guest", ".*", ".*", ".*")
    with pika.BlockingConnection(pika.URLParameters(broker.url.rpartition("/")[0] + "/shop")) as connection:
        connection.channel().queue_declare("orders")
    ended, out, err = run(*line.split())
    assert (ended, out) == (status, "") and said in err and "<<" not in err, err


def test_the_address_with_its_password_is_not_repeated_in_an_error(run: Run) -> None:
    assert "guest:guest" not in run("delete_user", "one", "two")[2]
    assert "guest:guest" not in run("delete_user", "--url=http://guest:guest@127.0.0.1:1")[2]


def test_definitions_go_to_standard_output_with_nothing_before_them(
    broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    url = broker.http_url.replace("http://", "http://guest:guest@")
    assert ctl.main(["export_definitions", "-", "--url", url]) == 0
    assert "users" in json.loads(capsys.readouterr().out)


def test_a_certificate_that_is_about_to_expire_fails_the_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    certificate, key = Authority(tmp_path, "ours").issue("localhost")  # valid for a day
    with Broker(tls_port=0, tls_cert=str(certificate), tls_key=str(key)) as secure:
        url = secure.http_url.replace("http://", "http://guest:guest@")
        check = ["-q", "check_certificate_expiration", "--url", url]
        assert ctl.main(check) == 69
        assert "expire within 4 weeks" in capsys.readouterr().err
        assert ctl.main([*check, "--unit", "days", "--within", "0"]) == 0
        assert ctl.main(["-q", "check_protocol_listener", "amqp/ssl", "--url", url]) == 0
