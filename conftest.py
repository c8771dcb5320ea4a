"""Says at the top of every test run which build is tested, and loads our pytest plugin when it is not installed."""

from __future__ import annotations

import pytest

import warrenmq
from warrenmq.testing import plugin


def pytest_report_header() -> str:
    return f"warren {warrenmq.__version__}: {warrenmq.build_info()}"


def pytest_configure(config: pytest.Config) -> None:
    if not config.pluginmanager.is_registered(plugin):  # a source tree that nobody installed
        config.pluginmanager.register(plugin, "warrenmq")
