"""Verbs of ``warren ctl`` that do something to queues, connections and definitions."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from warrenmq.cli._api import DATA, SOFTWARE, UNAVAILABLE, USAGE, Api, Failure, segment
from warrenmq.cli._progress import shown
from warrenmq.cli.ctl.call import Call, Misuse, Result, bad_argument, expect
from warrenmq.cli.ctl.output import Facts


def purge_queue(call: Call) -> Result:
    answer = call.api.ask("DELETE", f"/queues/{call.at}/{segment(call.arguments[0])}/contents")
    expect(answer, Failure("not_found", UNAVAILABLE))
    held = answer.headers.get("warren-leased", "0")
    return None if held == "0" else f"{held} leased messages stay with their leases"


def delete_queue(call: Call) -> Result:
    path = f"/queues/{call.at}/{segment(call.arguments[0])}"
    found = call.api.ask("GET", path + "?columns=messages_ready")
    expect(found, Failure("Queue not found", USAGE))
    conditions = "&".join(f"{name}=true" for name in ("if-empty", "if-unused") if name in call.options)
    answer = call.api.ask("DELETE", f"{path}?{conditions}")
    if answer.status == 400 and conditions:
        raise Failure("Queue is not empty" if "empty" in answer.reason else "Queue is in use", USAGE)
    expect(answer, Failure("Queue not found", USAGE))
    held = answer.headers.get("warren-leased", "0")
    leased = "" if held == "0" else f" and {held} leased ones"
    return f"Queue was successfully deleted with {found.body.get('messages_ready', 0)} ready messages{leased}"


def _trace(call: Call, on: bool) -> Result:
    call.known_vhost()
    expect(call.api.ask("PUT", f"/vhosts/{call.at}", {"tracing": on}))
    return f"Trace {'enabled' if on else 'disabled'} for vhost {call.vhost}"


def trace_on(call: Call) -> Result:
    return _trace(call, True)


def trace_off(call: Call) -> Result:
    return _trace(call, False)


def close_connection(call: Call) -> Result:
    name, reason = call.arguments
    answer = call.api.ask("DELETE", call.path("connections", name), headers={"x-reason": reason})
    expect(answer, Failure(f"no connection {name}", UNAVAILABLE))
    return None


def _close(call: Call, found: list[dict[str, Any]], reason: str) -> Result:
    pause = call.options.get("per-connection-delay", "0")
    if not pause.isdigit():
        raise Misuse(f"Invalid options for this command:\n--per-connection-delay : {pause}")
    for number, one in enumerate(found):
        time.sleep(int(pause) / 1000 if number else 0)
        call.api.ask("DELETE", call.path("connections", one["name"]), headers={"x-reason": reason})
    return f"Closed {len(found)} connections"


def close_all_connections(call: Call) -> Result:
    found = call.api.get("/connections")
    if "global" not in call.options:
        found = [one for one in found if one["vhost"] == call.vhost]
    if "limit" in call.options and call.options["limit"].isdigit() and int(call.options["limit"]) > 0:
        found = found[: int(call.options["limit"])]
    return _close(call, found, call.arguments[0])


def close_all_user_connections(call: Call) -> Result:
    user, reason = call.arguments
    _close(call, [one for one in call.api.get("/connections") if one["user"] == user], reason)
    return None


def _document(call: Call) -> Path | None:
    """The file that is named; None is standard input or output."""
    if call.options.get("format", "json").lower() != "json":
        raise Misuse("Formatter should be json: there is no Erlang term format here")
    return None if call.arguments in ([], ["-"]) else Path(call.arguments[0])


def export_definitions(call: Call) -> Result:
    file = _document(call)
    if file is not None and not file.parent.is_dir():
        raise bad_argument(f"Directory {file.parent} does not exist")
    definitions = call.api.get("/definitions")
    text = json.dumps(definitions)
    if file is None:
        return Facts(text, definitions)
    try:
        file.write_text(text)
    except OSError as error:
        raise Failure(f"cannot write {file}: {error.strerror}", SOFTWARE) from None
    return None


def import_definitions(call: Call) -> Result:
    file = _document(call)
    if file is not None and not file.exists():
        raise bad_argument(f"File {file} does not exist")
    try:
        data = sys.stdin.buffer.read() if file is None else file.read_bytes()
    except OSError as error:
        raise Failure(f"cannot read {file}: {error.strerror}", SOFTWARE) from None
    other = call.api.another()
    with shown(lambda: _there(other)):
        expect(call.api.ask("POST", "/definitions", data), status=DATA)
    return None


def _there(api: Api) -> str:
    """What the broker has so far, while it imports."""
    try:
        totals = api.get("/overview")["object_totals"]
    except (Failure, KeyError):
        return ""
    return f"there are {totals['queues']} queues and {totals['exchanges']} exchanges"
