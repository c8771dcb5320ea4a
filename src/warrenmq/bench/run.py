"""One run: set up, let publishers and consumers go, measure the broker meanwhile, say what came out."""

from __future__ import annotations

import multiprocessing
import time
import traceback
import uuid
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from warrenmq.bench import process, worker
from warrenmq.bench.workload import Workload
from warrenmq.client.errors import ConnectError

Progress = Callable[[int, int], None]
CONTEXT = multiprocessing.get_context("spawn")


class BenchFailed(Exception):
    """A publisher or consumer failed; the text says how."""


class NoBroker(BenchFailed):
    """A broker that does not answer, or lets us not in."""


def _run(role: str, url: str, prefix: str, workload: Workload, number: int, counter: Any, gate: Any, out: Any) -> None:
    """In a process of its own."""
    try:
        if role == "publish":
            gate.wait()
            out.put((role, worker.publish(url, prefix, workload, number, counter)))
        else:
            out.put((role, worker.consume(url, prefix, workload, number, counter, lambda: out.put(("ready", None)))))
    except BaseException as error:
        out.put(("failed", f"{role} {number}: {error}\n{traceback.format_exc()}"))


def percentiles(nanoseconds: list[int]) -> dict[str, float]:
    """In milliseconds."""
    if not nanoseconds:
        return {}
    ordered = sorted(nanoseconds)
    at = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}
    found = {name: ordered[min(len(ordered) - 1, int(len(ordered) * part))] / 1e6 for name, part in at.items()}
    return {**found, "max": ordered[-1] / 1e6}


def run(url: str, workload: Workload, progress: Progress | None = None, timeout: float = 600.0) -> dict[str, Any]:
    """Run the workload against the broker at this URL. Raises BenchFailed."""
    problems = workload.problems()
    if problems:
        raise BenchFailed("; ".join(problems))
    prefix = f"warren-bench-{uuid.uuid4().hex[:8]}"
    pids = process.listening(urlsplit(url).port or 5672)
    try:
        worker.set_up(url, prefix, workload)
    except ConnectError as error:
        raise NoBroker(str(error)) from error
    except Exception as failure:
        raise BenchFailed(f"the broker at {_shown(url)} cannot be used: {failure}") from failure
    try:
        return _measure(url, prefix, workload, pids, progress, timeout)
    finally:
        worker.tear_down(url, prefix, workload)


def _shown(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port or 5672}"


def _measure(
    url: str, prefix: str, workload: Workload, pids: list[int], progress: Progress | None, timeout: float
) -> dict[str, Any]:
    out: Any = CONTEXT.Queue()
    gate = CONTEXT.Event()
    sent = CONTEXT.Value("q", 0)
    received = CONTEXT.Value("q", 0)

    def start(role: str, count: int, counter: Any) -> list[Any]:
        made = []
        for number in range(count):
            one = CONTEXT.Process(
                target=_run, args=(role, url, prefix, workload, number, counter, gate, out), daemon=True
            )
            one.start()
            made.append(one)
        return made

    processes = start("publish", workload.publishers, sent)
    results: dict[str, list[dict[str, Any]]] = {"publish": [], "consume": []}
    deadline = time.monotonic() + timeout

    def collect(role: str, count: int, ready: int = 0) -> None:
        while len(results[role]) < count or ready > 0:
            if progress is not None:
                progress(sent.value, received.value)
            try:
                kind, value = out.get(timeout=0.2)
            except Exception:
                if time.monotonic() > deadline:
                    raise BenchFailed(f"not done after {timeout:.0f} s") from None
                continue
            if kind == "failed":
                raise BenchFailed(value)
            if kind == "ready":
                ready -= 1
                if role == "ready" and ready == 0:
                    return
            else:
                results[kind].append(value)

    results["ready"] = []
    try:
        figures: dict[str, Any] = {}
        if not workload.fill and workload.consumers:
            processes += start("consume", workload.consumers, received)
            collect("ready", 0, workload.consumers)
        else:
            time.sleep(1.0)  # publishers are up
        before, began = process.cpu_seconds(pids), time.monotonic()
        gate.set()
        collect("publish", workload.publishers)
        if workload.fill:
            figures["fill"] = _costs(workload.messages, pids, before, began)
            figures["resident_full_bytes"] = process.resident_bytes(pids)
            if workload.consumers:
                before, began = process.cpu_seconds(pids), time.monotonic()
                start("consume", workload.consumers, received)
                collect("consume", workload.consumers)
                figures["drain"] = _costs(workload.messages, pids, before, began)
        else:
            if workload.consumers:
                collect("consume", workload.consumers)
            count = workload.deliveries or workload.messages
            figures.update(_costs(count, pids, before, began))
    finally:
        for one in processes:
            one.terminate()
    figures["messages"] = workload.messages
    figures["nacked"] = sum(one["nacked"] for one in results["publish"])
    figures["returned"] = sum(one["returned"] for one in results["publish"])
    figures["received"] = sum(one["received"] for one in results["consume"])
    latency = [ns for one in results["consume"] for ns in one["latency_ns"]]
    confirm = [ns for one in results["publish"] for ns in one["confirm_ns"]]
    if latency:
        figures["latency_ms"] = percentiles(latency)
    if confirm:
        figures["confirm_ms"] = percentiles(confirm)
    return figures


def _costs(count: int, pids: list[int], cpu_before: float, began: float) -> dict[str, Any]:
    seconds = time.monotonic() - began
    found: dict[str, Any] = {"seconds": seconds, "rate": count / seconds}
    if pids:
        cpu = process.cpu_seconds(pids) - cpu_before
        found["cpu_seconds"] = cpu
        found["cpu_s_per_million"] = cpu / count * 1e6
    return found
