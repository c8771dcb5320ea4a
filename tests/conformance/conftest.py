"""Assertions in modules that are no test files are explained as well."""

import pytest

pytest.register_assert_rewrite(
    "tests.conformance.checklist",
    "tests.conformance.checklist_publish",
    "tests.conformance.checklist_consume",
    "tests.support.rawclient",
)
