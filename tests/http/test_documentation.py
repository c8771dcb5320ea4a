"""The documentation says what the code does."""

from __future__ import annotations

from pathlib import Path

import pytest

from warrenmq.cli.ctl.verbs import VERBS
from warrenmq.http.description import document
from warrenmq.http.table import ENDPOINTS

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("page", document.PAGES)
def test_tables_in_the_documentation_are_those_of_the_code(page: str) -> None:
    text = (DOCS / page).read_text()
    assert document.fill(page, text) == text, "run: python -m warrenmq.http.description.document docs"
    assert all(table() in text for table in document.PAGES[page].values())


def test_no_two_endpoints_answer_the_same_request() -> None:
    rows = [(one.method, tuple("{}" if part.startswith("{") else part for part in one.segments)) for one in ENDPOINTS]
    assert len(rows) == len(set(rows))


def test_every_verb_of_the_issue_is_there() -> None:
    wanted = """list_queues list_exchanges list_bindings list_connections add_user delete_user change_password
        set_user_tags add_vhost delete_vhost set_permissions clear_permissions set_topic_permissions
        clear_topic_permissions set_policy clear_policy close_connection close_all_connections delete_queue purge_queue
        trace_on trace_off set_vm_memory_high_watermark set_disk_free_limit stop_app start_app status
        export_definitions import_definitions""".split()
    assert set(wanted) <= set(VERBS)
