"""/backup: a consistent copy of the data folder of the running broker, to a new folder on its machine."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from msgspec import Struct

from warrenmq.http.endpoint import ADMINISTRATOR, Call, Endpoint, Json
from warrenmq.http.errors import ApiError, bad_request
from warrenmq.http.names import check_nul
from warrenmq.log import backup
from warrenmq.log.files import Files
from warrenmq.log.format import LogError

PATIENCE = 200  # times to ask while files are just being rewritten
PAUSE = 0.05


class BackupRequest(Struct):
    """An absolute path on the broker's machine: a folder that does not exist yet, or is empty."""

    folder: str


class BackupInfo(Struct):
    """A backup that was made. ``damaged``: messages that do not check on disk, and so do not in the copy."""

    folder: str
    bytes: int
    damaged: int


async def make(call: Call) -> object:
    wanted = await call.body(BackupRequest)
    check_nul("folder", wanted.folder)
    folder = Path(wanted.folder)
    if not folder.is_absolute():
        raise bad_request(f"folder: {wanted.folder!r} is not an absolute path")
    server = call.bridge.server
    refused = backup.refusal(str(server.settings.data_dir), wanted.folder)
    if refused:
        raise bad_request(f"folder: {refused}")
    await call.bridge.committed()
    plan = await _plan(call)
    source = str(server.settings.data_dir)
    try:
        damaged = await asyncio.to_thread(backup.copy, source, str(folder), Files(), plan)
    except backup.Taken as taken:
        raise bad_request(f"folder: {taken}") from None
    except (OSError, LogError) as error:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        raise ApiError(500 if isinstance(error, LogError) else 400, "bad_request", f"{folder}: {error}") from None
    finally:
        backup.release(server.log)
    return Json(BackupInfo(str(folder), int(plan.total()), len(damaged)), status_code=201)


async def _plan(call: Call) -> backup.Backup:
    for _ in range(PATIENCE):
        plan = backup.plan(call.bridge.server.log)
        if plan is not None:
            return plan
        await asyncio.sleep(PAUSE)
    raise ApiError(503, "timeout", "the log's files were being rewritten all the time; try again")


ENDPOINTS = [
    Endpoint(
        "POST",
        "/backup",
        ADMINISTRATOR,
        make,
        "Copy the data folder, consistently, while the broker runs",
        body=BackupRequest,
        answer=BackupInfo,
        status=201,
    ),
]
