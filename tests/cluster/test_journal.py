"""The journal of a cluster: each leader writes its own files, and together they are one, whichever were kept."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow")

import pyarrow.parquet as pq

from tests.support.cluster import Cluster, Member, Publisher
from warrenmq.journal.files import current, files_of, logs_of


def journal_of(member: Member) -> Path:
    return member.folder / "data" / "journal"


def rows(folder: Path) -> list[dict[str, Any]]:
    """What the files of a folder that count tell."""
    columns = ["event", "message", "queue", "time", "until"]
    found: list[dict[str, Any]] = []
    for log in logs_of(folder) if folder.is_dir() else []:
        for one in current(files_of(folder, log)):
            found += pq.read_table(one.path, columns=columns).to_pylist()
    return found


def published(folder: Path) -> int:
    for _ in range(100):
        try:
            return sum(row["event"] == "published" for row in rows(folder))
        except FileNotFoundError:
            pass  # joined meanwhile
    raise AssertionError("files come and go")


def test_only_the_leader_writes_and_the_files_of_all_leaders_tell_everything_once(tmp_path: Path) -> None:
    with Cluster(tmp_path, 2, journal="on", journal_interval=0.2) as cluster:
        publisher = Publisher(cluster)
        publisher.wait_for_more()
        first = cluster.need_leader()
        (second,) = [member for member in cluster.members if member is not first]
        cluster.wait("journal", lambda: published(journal_of(first)) > 0)
        assert not journal_of(second).exists()
        first.kill()
        cluster.need_leader()
        publisher.wait_for_more()
        publisher.stop()
        cluster.wait("journal", lambda: published(journal_of(second)) >= len(publisher.confirmed))
        assert second.stop() == 0
    together = tmp_path / "together"
    shutil.copytree(journal_of(first), together)
    shutil.copytree(journal_of(second), together, dirs_exist_ok=True)
    told = Counter(row["message"] for row in rows(together) if row["event"] == "published")
    assert len(told) >= len(publisher.confirmed)
    assert set(told.values()) == {1}, "each once"
    entered = Counter(row["message"] for row in rows(together) if row["event"] == "enqueued")
    assert entered == told
    [handed_over] = [row for row in rows(together) if row["event"] == "interrupted"]
    assert handed_over["time"] < handed_over["until"]
