"""The data folder itself: whose it is, and what is said when it is no longer the one the broker opened."""

from __future__ import annotations

import logging
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import web
from warrenmq.client import Connection
from warrenmq.testing import Broker


def until(question: Callable[[], bool]) -> None:
    for _ in range(6000):
        if question():
            return
        time.sleep(0.01)
    raise AssertionError("it did not come about")


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def said(caplog: pytest.LogCaptureFixture, event: str) -> list[str]:
    return [record.getMessage() for record in caplog.records if event in record.getMessage()]


def test_a_new_data_folder_is_its_owner_s_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    before = os.umask(0)
    try:
        with Broker(data_dir=tmp_path / "deep" / "data"):
            assert mode(tmp_path / "deep" / "data") == 0o700
            assert all(mode(path) == 0o600 for path in (tmp_path / "deep" / "data").iterdir())
    finally:
        os.umask(before)
    assert not said(caplog, "open_to_others")


def test_a_folder_that_others_may_enter_is_left_so_and_it_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    folder.chmod(0o750)
    with Broker(data_dir=folder):
        assert mode(folder) == 0o750
    (line,) = said(caplog, "open_to_others")
    assert "0750" in line and f"chmod 700 {folder}" in line


@pytest.mark.parametrize("replaced", [False, True])
def test_a_folder_that_was_removed_or_replaced_is_said_by_health_and_log_and_other_watches_go_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, replaced: bool
) -> None:
    caplog.set_level(logging.INFO)
    folder = tmp_path / "data"
    with Broker(data_dir=folder) as broker, web.Client(auth=("guest", "guest")) as http:
        check = f"{broker.http_url}/api/health/checks/log"
        assert http.get(check).status_code == 200
        folder.rename(tmp_path / "away")
        if replaced:
            shutil.copytree(tmp_path / "away", folder)
        until(lambda: str(folder) in http.get(check).text)  # the log may have failed a moment before
        assert http.get(check).status_code == 503
        reason = http.get(check).json()["reason"]
        assert str(folder) in reason and ("was replaced" if replaced else "is gone") in reason
        assert "warren_data_folder_gone 1.0\n" in http.get(f"{broker.http_url}/metrics").text
        assert len(said(caplog, "folder.gone")) == 1, "once, not at every look"
        with Connection(broker.url) as connection:
            assert connection.channel().queue_declare("q", durable=False) is not None, "nothing for the disk in it"
        if replaced:
            shutil.rmtree(folder)
        (tmp_path / "away").rename(folder)
        until(lambda: http.get(check).status_code == 200)
        assert len(said(caplog, "folder.back")) == 1
        assert not said(caplog, "background.failed")
