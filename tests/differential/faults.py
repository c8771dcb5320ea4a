"""Twenty and more wrong lines, each of which the differential test must notice.

Duty: the list, and a copy of the sources with one of them planted. A fault is one line of one file; `old` may carry
a neighbouring line where the line alone is not unique. Not here: the proof (test_planted_faults.py).
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import warrenmq


@dataclass(frozen=True)
class Fault:
    name: str
    scenario: str
    file: str
    old: str
    new: str


FAULTS = (
    Fault("an internal exchange takes publishes", "publishing", "broker/publish/stages.py",
          "    if exchange.internal:\n", "    if False:\n"),
    Fault("BCC stays visible", "publishing", "broker/publish/path.py",
          ' if name != "BCC"}', "}"),
    Fault("a negative expiration is accepted", "publishing", "broker/expiration.py",
          "    if value < 0:\n", "    if value < -5:\n"),
    Fault("anybody may claim any user-id", "publishing", "broker/publish/stages.py",
          "    if claimed != actual and not", "    if False and not"),
    Fault("a mandatory message is not returned", "publishing", "broker/publish/outcomes.py",
          "        publishing.broker.unroutable += 1\n        if mandatory:\n",
          "        publishing.broker.unroutable += 1\n        if not mandatory:\n"),
    Fault("a refused message is acked", "publishing", "broker/publish/outcomes.py",
          "        if outcome == REFUSED:\n", "        if outcome == NO_ROUTE:\n"),
    Fault("a run of confirms loses its multiple flag", "publishing", "broker/publish/confirms.py",
          "_ACK, last - offset, last > first)", "_ACK, last - offset, False)"),
    Fault("the alternate exchange is asked although a queue was found", "routing", "broker/exchange/walk.py",
          "        if not found and exchange.alternate:\n", "        if exchange.alternate:\n"),
    Fault("a queue reached twice gets two copies", "routing", "broker/exchange/walk.py",
          "        if destination in self.seen:\n",
          "        if isinstance(destination, Exchange) and destination in self.seen:\n"),
    Fault("* matches no word", "routing", "broker/exchange/topic.py",
          "                    if star is not None:\n", "                    if star is None and star is not None:\n"),
    Fault("# matches only one word", "routing", "broker/exchange/topic.py",
          "                    if node.is_hash:\n                        self._take(node, following)\n",
          "                    if node.is_hash:\n                        pass\n"),
    Fault("one matching header of several is enough for x-match all", "routing", "broker/exchange/headers.py",
          "            if rule.any or len(rule.conditions) == 1 or rule.holds(headers):\n",
          "            if rule.any or len(rule.conditions) == 1 or True:\n"),
    Fault("ack multiple leaves out the tag itself", "settling", "broker/acks.py",
          "            end = tag - self._base + 1\n", "            end = tag - self._base\n"),
    Fault("a requeued message is not flagged redelivered", "settling", "broker/queue/queue.py",
          "        entry.redelivered = True\n", "        entry.redelivered = False\n"),
    Fault("an unknown delivery tag is ignored", "settling", "broker/channel.py",
          "            if entry is None:\n                raise unknown_tag(tag, 80)\n",
          "            if entry is None:\n                return\n"),
    Fault("prefetch allows one more", "settling", "broker/consumer.py",
          "self.unacked >= self.prefetch", "self.unacked > self.prefetch"),
    Fault("get counts itself among what is left", "settling", "broker/methods/basic.py",
          "message_count=queue.ready,\n", "message_count=queue.ready + 1,\n"),
    Fault("rollback forgets the acknowledged deliveries", "transactions", "broker/transaction.py",
          "            self._channel.unacked.put_back([ack.taken for ack in acks])\n",
          "            pass\n"),
    Fault("commit rejects what was to be requeued", "transactions", "broker/committing.py",
          "channel.refuse(entries, what == REQUEUE)", "channel.refuse(entries, what != REQUEUE)"),
    Fault("an exclusive queue is everybody's", "topology", "broker/vhost.py",
          "        if owner is connection or (owner is None and not strict):\n", "        if not strict:\n"),
    Fault("the one served is served again", "topology", "broker/queue/dispatch.py",
          "        if len(ring) > 1 and ring[0] is consumer", "        if len(ring) > 9 and ring[0] is consumer"),
    Fault("an auto-delete queue stays", "topology", "broker/queue/queue.py",
          "            if self.auto_delete and self.had_consumer", "            if self.durable and self.had_consumer"),
    Fault("drop-head keeps one more", "limits", "broker/queue/queue.py",
          "self.ready > s.max_length)", "self.ready > s.max_length + 1)"),
    Fault("a dead letter keeps its expiration", "limits", "broker/dead_letter.py",
          "    properties.expiration = None\n", "    pass\n"),
    Fault("x-death names the wrong exchange", "limits", "broker/dead_letter.py",
          '        "exchange": Field("S", origin.exchange),\n', '        "exchange": Field("S", exchange),\n'),
    Fault("priorities above the maximum wrap to the lowest", "limits", "broker/queue/queue.py",
          "            priority = self.max_priority\n", "            priority = 0\n"),
)


def planted(fault: Fault, into: Path) -> None:
    """A copy of the sources, uncompiled, with the fault in it."""
    source = Path(warrenmq.__file__).parent
    shutil.copytree(source, into / "warrenmq", ignore=shutil.ignore_patterns("*.so"))
    path = into / "warrenmq" / fault.file
    text = path.read_text()
    found = text.count(fault.old)
    assert found == 1, f"'{fault.name}': {fault.file} has the spoilt line {found} times, not once: renew the fault"
    path.write_text(text.replace(fault.old, fault.new))


@dataclass
class FaultyBroker:
    """A Warren running from such a copy, without its HTTP API."""

    name: str
    port: int

    def http(self, method: str, path: str, body: object = None, user: str = "guest:guest") -> tuple[int, object]:
        raise AssertionError("no scenario for planted faults uses HTTP")


@contextlib.contextmanager
def start_faulty(fault: Fault) -> Iterator[FaultyBroker]:
    folder = Path(tempfile.mkdtemp(prefix="warren-fault-"))
    try:
        planted(fault, folder)
        ready = folder / "ready.json"
        with open(folder / "log", "wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "warrenmq", "serve", "--port", "0", "--http-port", "0", "--ready-file",
                 str(ready), "--data-dir", str(folder / "data")],
                env={**os.environ, "PYTHONPATH": str(folder)}, cwd=folder, stdout=output, stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            )
        try:
            while not ready.exists():
                assert process.poll() is None, f"'{fault.name}' does not start:\n{(folder / 'log').read_text()[-2000:]}"
                time.sleep(0.02)
            yield FaultyBroker("warren", int(json.loads(ready.read_text())["amqp"].rpartition(":")[2]))
        finally:
            process.kill()
            process.wait(60)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
