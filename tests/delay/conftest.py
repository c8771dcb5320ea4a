"""`session`: a broker on the virtual clock with a channel."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.delay.session import Session, session_on


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with session_on(tmp_path) as session:
        yield session
