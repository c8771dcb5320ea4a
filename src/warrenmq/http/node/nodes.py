"""/nodes: the one node there is, and its limits that may be changed while it runs."""

from __future__ import annotations

import logging
import os
import resource
from pathlib import Path

from warrenmq.broker.services.alarms import DEFAULT_DISK_LIMIT
from warrenmq.http.bridge import Bridge
from warrenmq.http.endpoint import ADMINISTRATOR, MONITORING, Call, Endpoint, NoContent
from warrenmq.http.errors import ApiError, bad_request, not_found
from warrenmq.http.figures.machine import free_disk, open_files, resident_memory
from warrenmq.http.figures.rates import Range, ranges
from warrenmq.http.figures.sampler import churn, disk
from warrenmq.http.listing import with_columns
from warrenmq.http.models import ExchangeTypeInfo, Node, Object, Rate
from warrenmq.http.node.overview import contexts, exchange_types
from warrenmq.http.requests import LogLevel, Settings
from warrenmq.server.config import TABLE
from warrenmq.server.logging import ROOT
from warrenmq.sizes import parse_size

MECHANISMS = {
    "PLAIN": "SASL PLAIN authentication mechanism",
    "AMQPLAIN": "QPid AMQPLAIN mechanism",
    "EXTERNAL": "TLS peer verification",
}
LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
    "none": logging.CRITICAL + 1,
}


def node_info(bridge: Bridge, wanted: Range | None) -> Node:
    broker = bridge.broker
    alarms = bridge.alarms
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = resident_memory() if alarms is None else int(alarms.memory_used)
    free = free_disk(bridge.server) if alarms is None else int(alarms.disk_free)
    descriptors = open_files()
    rates = bridge.rates("node", "", bridge.node)
    settings = bridge.server.settings
    tls = bool(bridge.server.tls_addresses)
    written = broker.services.log.commits.disk
    return Node(
        name=bridge.node,
        type="disc",
        running=True,
        os_pid=str(os.getpid()),
        uptime=int(broker.services.io_now() - broker.node.started_at),
        processors=os.cpu_count() or 1,
        run_queue=0,
        fd_used=descriptors,
        fd_used_details=rates.details("fd_used", wanted),
        fd_total=files,
        sockets_used=len(broker.connections),
        sockets_used_details=rates.details("sockets_used", wanted),
        sockets_total=files,
        proc_used=1,
        proc_used_details=Rate(),
        proc_total=1,
        mem_used=used,
        mem_used_details=rates.details("mem_used", wanted),
        mem_limit=0 if alarms is None else int(alarms.memory_limit),
        mem_alarm=alarms is not None and alarms.memory,
        mem_calculation_strategy="rss",
        disk_free=free,
        disk_free_details=rates.details("disk_free", wanted),
        disk_free_limit=DEFAULT_DISK_LIMIT if alarms is None else int(alarms.disk_limit),
        disk_free_alarm=alarms is not None and (alarms.disk or alarms.log_failed),
        rates_mode="detailed",
        partitions=[],
        exchange_types=exchange_types(),
        auth_mechanisms=[
            ExchangeTypeInfo(name, described, name in settings.auth_mechanisms and (name != "EXTERNAL" or tls))
            for name, described in MECHANISMS.items()
        ],
        applications=[{"name": "warren", "description": "Warren", "version": broker.node.version}],
        contexts=contexts(bridge),
        log_files=[] if settings.log_file is None else [str(settings.log_file.absolute())],
        db_dir=str(Path(settings.data_dir).absolute()),
        config_files=[] if settings.file is None else [str(settings.file.absolute())],
        net_ticktime=60,
        enabled_plugins=["rabbitmq_management"],
        cluster_links=[],
        io_sync_avg_time=average(int(written.syncs.total), sum(map(int, written.syncs.counts))),
        io_write_avg_time=average(int(written.write_us), int(written.writes)),
        **rates.stats(churn(broker) | disk(broker), wanted),
    )


def average(microseconds: int, count: int) -> float:
    """Milliseconds."""
    return round(microseconds / 1000 / count, 3) if count else 0.0


def this_node(call: Call) -> None:
    if call.path["node"] != call.bridge.node:
        raise not_found()


async def list_nodes(call: Call) -> list[object]:
    return [with_columns(call, node_info(call.bridge, ranges(call.query).node_stats))]


async def get_node(call: Call) -> object:
    this_node(call)
    return with_columns(call, node_info(call.bridge, ranges(call.query).node_stats))


async def memory(call: Call) -> Object:
    this_node(call)
    total = resident_memory()
    return {"memory": {"total": {"rss": total, "allocated": total}, "strategy": "rss"}}


async def change_limits(call: Call) -> NoContent:
    """Warren's own: what rabbitmqctl's set_vm_memory_high_watermark and set_disk_free_limit do."""
    this_node(call)
    wanted = await call.body(Settings)
    alarms = call.bridge.alarms
    if alarms is None:
        raise ApiError(503, "unavailable", "this broker has no alarms")
    call.bridge.begin()
    try:
        if wanted.memory_high_watermark is not None:
            alarms.set_memory_watermark(wanted.memory_high_watermark)
        if wanted.memory_limit is not None:
            alarms.set_memory_limit(_size(wanted.memory_limit))
        if wanted.disk_free_limit is not None:
            alarms.set_disk_limit(_size(wanted.disk_free_limit))
        if wanted.disk_free_limit_mem_relative is not None:
            alarms.set_disk_limit(int(alarms.memory_total * max(0.0, wanted.disk_free_limit_mem_relative)))
    except ValueError as error:
        raise bad_request(str(error)) from None
    call.bridge.broker.update_alarms()
    return NoContent()


async def stop_app(call: Call) -> NoContent:
    """Send the clients away and forget what is not durable; HTTP stays, so that it can be started again."""
    this_node(call)
    await call.bridge.stop_listening()
    return NoContent()


async def start_app(call: Call) -> NoContent:
    this_node(call)
    await call.bridge.start_listening()
    return NoContent()


async def suspend_listeners(call: Call) -> NoContent:
    """Take no new clients; those that are there stay."""
    this_node(call)
    call.bridge.suspend_listening()
    return NoContent()


async def environment(call: Call) -> Object:
    """Warren's own: every setting with the value it runs with; passwords are not told."""
    this_node(call)
    settings = call.bridge.server.settings
    return {name: _told(name, getattr(settings, name)) for name in TABLE}


def _told(name: str, value: object) -> object:
    if name == "default_pass":
        return "(hidden)"
    return value if value is None or isinstance(value, bool | int | float | str | list) else str(value)


async def log_level(call: Call) -> NoContent:
    """Warren's own: what rabbitmqctl's set_log_level does; until the next start or reload."""
    this_node(call)
    wanted = await call.body(LogLevel)
    level = LEVELS.get(wanted.level)
    if level is None:
        raise bad_request("invalid log level")
    logging.getLogger(ROOT).setLevel(level)
    return NoContent()


def _size(value: int | str) -> int:
    return parse_size(value) if isinstance(value, str) else max(0, value)


ENDPOINTS = [
    Endpoint("GET", "/nodes", MONITORING, list_nodes, "The node", answer=list[Node], listing=True),
    Endpoint("GET", "/nodes/{node}", MONITORING, get_node, "The node", answer=Node),
    Endpoint("GET", "/nodes/{node}/memory", MONITORING, memory, "Where its memory goes"),
    Endpoint(
        "PUT",
        "/nodes/{node}/limits",
        ADMINISTRATOR,
        change_limits,
        "Change memory and disk limits",
        body=Settings,
        status=204,
    ),
    Endpoint(
        "POST",
        "/nodes/{node}/stop_app",
        ADMINISTRATOR,
        stop_app,
        "Take no AMQP clients, forget what is not durable",
        status=204,
    ),
    Endpoint("POST", "/nodes/{node}/start_app", ADMINISTRATOR, start_app, "Take AMQP clients again", status=204),
    Endpoint(
        "POST",
        "/nodes/{node}/suspend_listeners",
        ADMINISTRATOR,
        suspend_listeners,
        "Take no new AMQP clients",
        status=204,
    ),
    Endpoint("POST", "/nodes/{node}/resume_listeners", ADMINISTRATOR, start_app, "Take new ones again", status=204),
    Endpoint("GET", "/nodes/{node}/environment", ADMINISTRATOR, environment, "The settings it runs with"),
    Endpoint(
        "PUT",
        "/nodes/{node}/log_level",
        ADMINISTRATOR,
        log_level,
        "Log more or less from now on",
        body=LogLevel,
        status=204,
    ),
]
