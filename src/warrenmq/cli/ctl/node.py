"""Verbs of ``warren ctl`` that change how the node runs: limits, listeners, log level."""

from __future__ import annotations

from typing import Any

from warrenmq.cli._api import SOFTWARE, UNAVAILABLE, Failure
from warrenmq.cli.ctl.call import Call, Misuse, Result, Unsaid, bad_argument, expect

LEVELS = ("debug", "info", "warning", "error", "critical", "none")


def _limits(call: Call, body: dict[str, Any]) -> Result:
    answer = call.api.ask("PUT", call.node_path("limits"), body)
    if answer.status == 400:
        raise bad_argument()
    expect(answer)
    return None


def _fraction(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise bad_argument() from None


def set_vm_memory_high_watermark(call: Call) -> Result:
    if call.arguments[0] == "absolute" and len(call.arguments) == 2:
        return _limits(call, {"memory_limit": call.arguments[1]})
    if len(call.arguments) > 1:
        raise Misuse("too many arguments.")
    fraction = _fraction(call.arguments[0])
    if not 0 <= fraction <= 1:
        raise bad_argument("The threshold should be a fraction between 0.0 and 1.0")
    return _limits(call, {"memory_high_watermark": fraction})


def set_disk_free_limit(call: Call) -> Result:
    if call.arguments[0] == "mem_relative" and len(call.arguments) == 2:
        return _limits(call, {"disk_free_limit_mem_relative": _fraction(call.arguments[1])})
    if len(call.arguments) > 1:
        raise Misuse("too many arguments.")
    return _limits(call, {"disk_free_limit": call.arguments[0]})


def set_log_level(call: Call) -> Result:
    level = call.arguments[0]
    if level not in LEVELS:
        raise Unsaid(f"level {level} is not supported. Try one of {', '.join(LEVELS)}", UNAVAILABLE)
    expect(call.api.ask("PUT", call.node_path("log_level"), {"level": level}))
    return None


def _ask(call: Call, what: str) -> Result:
    expect(call.api.ask("POST", call.node_path(what)))
    return None


def stop_app(call: Call) -> Result:
    return _ask(call, "stop_app")


def start_app(call: Call) -> Result:
    return _ask(call, "start_app")


def suspend_listeners(call: Call) -> Result:
    return _ask(call, "suspend_listeners")


def resume_listeners(call: Call) -> Result:
    return _ask(call, "resume_listeners")


def force_gc(call: Call) -> Result:
    """Nothing to do: memory is freed when its last user lets go of it."""
    call.api.get("/whoami")
    return None


def hipe_compile(call: Call) -> Result:
    return "This command is a no-op. HiPE is no longer supported by modern Erlang versions"


def restart_vhost(call: Call) -> Result:
    if call.api.ask("GET", f"/vhosts/{call.at}").status == 404:
        reason = f'{{:no_such_vhost, "{call.vhost}"}}'
        raise Failure(f"Failed to start vhost '{call.vhost}' on node '{call.node}'Reason: {reason}", SOFTWARE)
    return f"Vhost '{call.vhost}' is already running on node '{call.node}'"
