"""Says at the top of every test run which build is tested, and keeps the long tests for `make soak`."""

from __future__ import annotations

import warren


def pytest_report_header() -> str:
    return f"warren {warren.__version__}: {warren.build_info()}"
