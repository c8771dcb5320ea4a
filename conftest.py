"""For every test run: which build is tested, our pytest plugin when it is not installed, and hypothesis's profile."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

import warrenmq
from warrenmq.testing import plugin

# A deadline and the check for slow inputs measure the machine. A test's own list of suppressed checks
# replaces this one, so it names too_slow again (tests/house).
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


def pytest_report_header() -> str:
    return f"warren {warrenmq.__version__}: {warrenmq.build_info()}"


def pytest_configure(config: pytest.Config) -> None:
    if not config.pluginmanager.is_registered(plugin):  # a source tree that nobody installed
        config.pluginmanager.register(plugin, "warrenmq")
