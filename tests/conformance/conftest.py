"""The shared brokers, and which of them the conformance run talks to."""

import pytest

pytest.register_assert_rewrite("tests.conformance.checklist", "tests.conformance.checklist_publish",
                               "tests.conformance.checklist_consume", "tests.support.rawclient")

from tests.support.brokers import broker, rabbitmq, warren  # noqa: E402

__all__ = ["broker", "rabbitmq", "warren"]
