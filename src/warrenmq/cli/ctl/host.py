"""Verbs of ``warren ctl`` about the machine and the runtime: versions, names, ciphers, and the log file.

The log is read where this command runs, as rabbitmqctl's verbs are meant to run beside the node.
"""

from __future__ import annotations

import hashlib
import os
import socket
import sys
import time
from pathlib import Path

from warrenmq.cli._api import DATA, UNAVAILABLE, Failure
from warrenmq.cli.ctl.call import Call, Misuse, Result, Unsaid
from warrenmq.cli.ctl.output import Facts
from warrenmq.cli.ctl.report import node_of

LINES = 50  # what log_tail shows unless told otherwise
POLL = 0.2
TLS = ["tlsv1.3", "tlsv1.2"]  # what the listener accepts


def version(call: Call) -> Result:
    """Of the RabbitMQ whose tools this command stands in for; needs no broker."""
    from warrenmq.broker.node import RABBITMQ_VERSION

    return RABBITMQ_VERSION


def server_version(call: Call) -> Result:
    text = str(call.api.get("/overview")["rabbitmq_version"])
    return Facts(text, {"result": "ok", "value": text})


def erlang_version(call: Call) -> Result:
    """There is no Erlang: the runtime's name and version."""
    text = str(call.api.get("/overview")["erlang_full_version"])
    return Facts(text, {"result": "ok", "value": text})


def list_hashes(call: Call) -> Result:
    return "[" + ",".join(sorted(hashlib.algorithms_guaranteed)) + "]"


def cipher_suites(call: Call) -> Result:
    import ssl

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    names = [one["name"] for one in context.get_ciphers()]
    return Facts("\n".join(names), {"cipher_suites": names})


def tls_versions(call: Call) -> Result:
    return Facts("\n".join(TLS), {"result": "ok", "value": TLS})


def os_env(call: Call) -> Result:
    """The variables of this shell that Warren's commands read; those of a running broker are in `environment`."""
    found = {name: value for name, value in sorted(os.environ.items()) if name.startswith("WARREN_")}
    return Facts("\n".join(f"{name}={value}" for name, value in found.items()), found)


def resolve_hostname(call: Call) -> Result:
    families = {"ipv4": socket.AF_INET, "ipv6": socket.AF_INET6}
    wanted = call.options.get("address-family", "ipv4").lower()
    if wanted not in families:
        raise Misuse("unsupported address family: use IPv4 or IPv6")
    try:
        found = socket.getaddrinfo(call.arguments[0], None, families[wanted], socket.SOCK_STREAM)
    except OSError:
        raise Failure("Hostname does not resolve (resolution failed with an nxdomain)", DATA) from None
    return "\n".join(dict.fromkeys(str(one[4][0]) for one in found))


def discover_peers(call: Call) -> Result:
    return "No peers discovered"


# -- the log


def log_location(call: Call) -> Result:
    files = node_of(call)["log_files"] or ["<stderr>"]
    return Facts("\n".join(files), {"node_name": call.node, "paths": files, "result": "ok"})


def _log(call: Call) -> Path:
    files = node_of(call)["log_files"]
    if not files:
        raise Failure("the log goes to standard error: see the service manager, such as journalctl -u warren")
    if not Path(files[0]).exists():
        raise Failure(f"{files[0]} is not on this machine")
    return Path(files[0])


def log_tail(call: Call) -> Result:
    wanted = call.options.get("number", str(LINES))
    if not wanted.isdigit():
        raise Misuse("number must be a positive integer")
    with _log(call).open(encoding="utf-8", errors="replace") as file:
        return "".join(file.readlines()[-int(wanted) :]).rstrip("\n")


def log_tail_stream(call: Call) -> Result:
    """What is logged from now on, until ``--duration`` seconds are over or somebody interrupts."""
    given = call.options.get("duration", "")
    until = time.monotonic() + float(given) if given.isdigit() else float("inf")
    with _log(call).open(encoding="utf-8", errors="replace") as file:
        file.seek(0, os.SEEK_END)
        while time.monotonic() < until:
            sys.stdout.write(file.read())
            sys.stdout.flush()
            time.sleep(POLL)
    return None


def rotate_logs(call: Call) -> Result:
    """As in RabbitMQ; a log file that was moved away is made anew by itself."""
    raise Unsaid("This command does not rotate logs anymore [deprecated]", UNAVAILABLE)
