"""For every folder of tests: the shared brokers, and the order in which a run on several cores deals the files out.

`make test` gives each worker whole files (xdist's loadfile), so that what a file shares is set up once. The files that
take longest go first: the last one to be dealt out is then short, and no core waits for another at the end.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.support.brokers import broker, close_shared, rabbitmq, shared_ledger, warren
from warrenmq.testing.core import Core
from warrenmq.testing.core_client import CoreClient

__all__ = ["broker", "rabbitmq", "shared_ledger", "warren"]

#: Files of more than about twenty seconds, longest first. One that is missing here only makes the end less even.
LONGEST_FIRST = (
    "tests/spark/test_audit.py",
    "tests/spark/test_cluster.py",
    "tests/spark/test_spark_connect.py",
    "tests/spark/test_jobs.py",
    "tests/spark/test_lake.py",
    "tests/differential/test_differential.py",
    "tests/cluster/test_orders.py",
    "tests/console/test_in_a_browser.py",
    "tests/spark/test_declared.py",
    "tests/spark/test_replay.py",
    "tests/house/test_every_setting.py",
    "tests/spark/test_audit_end_to_end.py",
    "tests/bench/test_bench.py",
    "tests/spark/test_sink_crash_points.py",
    "tests/console/test_every_view.py",
    "tests/spark/test_following.py",
    "tests/http/test_beside_rabbitmq.py",
    "tests/spark/test_whatif.py",
    "tests/spark/test_stream_source.py",
    "tests/spark/test_watch.py",
    "tests/spark/test_acting.py",
    "tests/cluster/test_nodes.py",
    "tests/spark/test_task_retries.py",
    "tests/conformance/test_misuse.py",
    "tests/spark/test_lakehouse.py",
    "tests/memory/test_deleted.py",
    "tests/cluster/test_explore.py",
    "tests/clients/test_celery.py",
    "tests/house/test_journal_process.py",
    "tests/crash/test_crash.py",
    "tests/spark/test_wrong_input.py",
    "tests/spark/test_leased_source.py",
    "tests/spark/test_message_ids.py",
    "tests/spark/test_route.py",
    "tests/http/test_where.py",
    "tests/moving/test_stop_app.py",
    "tests/differential/test_restarts.py",
    "tests/spark/test_secrets.py",
    "tests/spark/test_queue_source.py",
    "tests/conformance/test_field_types.py",
    "tests/differential/test_queue_rules.py",
    "tests/spark/test_crash_points.py",
    "tests/cluster/test_model.py",
    "tests/broker/test_transfers.py",
    "tests/spark/test_pacing.py",
    "tests/spark/test_pushdown.py",
    "tests/moving/test_ctl_answers.py",
)
PLACES = {path: place for place, path in enumerate(LONGEST_FIRST)}


def place(item: pytest.Item) -> int:
    """Long files in their order, then the other files of Spark, whose session is up by then, then the rest."""
    path = item.nodeid.partition("::")[0]
    return PLACES.get(path, len(PLACES) + (not path.startswith("tests/spark/")))


@pytest.fixture
def core(tmp_path: Path) -> Core:
    """A broker in this process, on the virtual clock."""
    return Core(tmp_path)


@pytest.fixture
def client(core: Core) -> CoreClient:
    """A client of that broker."""
    return core.client()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    names = Counter(item.nodeid for item in items)
    twice = [name for name, count in names.items() if count > 1]
    if twice:  # a run on several cores knows tests by their names, and would leave out all but one without a word
        raise pytest.UsageError(f"several tests have one name: {', '.join(twice)}")
    items.sort(key=place)


def pytest_sessionfinish() -> None:
    """Here and not at exit: a worker that has reported its last test has ten seconds to end."""
    close_shared()
