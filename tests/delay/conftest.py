"""`desk`: a broker on the virtual clock with a channel."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.delay.desk import Desk, desk_on


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with desk_on(tmp_path) as desk:
        yield desk
