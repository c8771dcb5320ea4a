"""A backup never removes what somebody else has put to where it was to go."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.http.conftest import Api
from warrenmq.http.node import backup


def test_two_backups_to_one_folder_leave_one_of_them_whole(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both find it empty; while the second waits for the log's files the first is made."""
    api.put("/queues/%2F/kept", {"durable": True})
    wait = backup._plan
    first_is_made = asyncio.Event()
    waiting = []

    async def plan(call: Any) -> Any:
        waiting.append(call)
        if len(waiting) == 1:  # the one that comes first goes last
            await first_is_made.wait()
        return await wait(call)

    monkeypatch.setattr(backup, "_plan", plan)
    body = {"folder": str(tmp_path / "copy")}

    async def both() -> tuple[Any, Any]:
        late = asyncio.ensure_future(asyncio.to_thread(api.ask, "POST", "/backup", body))
        while not waiting:
            await asyncio.sleep(0.01)
        made = await asyncio.to_thread(api.ask, "POST", "/backup", body)
        first_is_made_on_the_loop()
        return made, await late

    def first_is_made_on_the_loop() -> None:
        async def done() -> None:
            first_is_made.set()

        api.broker.run(done())

    made, late = asyncio.run(both())
    assert made.status_code == 201
    there = {one.name: one.stat().st_size for one in (tmp_path / "copy").iterdir()}
    assert sum(there.values()) == made.json()["bytes"]
    assert late.status_code == 400 and "is not empty" in late.json()["reason"]
