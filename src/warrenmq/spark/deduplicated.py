"""Exactly once: whether exchanges remember all that an earlier attempt at the same rows may have published.

Duty: with ``deduplicate`` a task asks, before it publishes and when it is done, since when each of its exchanges
remembers every message id (``docs/deduplication.md``), and fails unless that is before its batch can have begun: then
whatever is repeated is recognised. Not here: the ids (``message_ids.py``), publishing (``publisher.py``).

When a batch began: of a streaming query Spark's checkpoint knows, for it notes the time of a batch before anything of
it runs, and keeps it however often the batch is repeated and by whom. A batch job began when its driver planned it; one
that is submitted again under the same ``batchKey`` has to say when it was first, with ``batchBegan``.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from warrenmq.spark.connect import BrokerLost
from warrenmq.spark.httpapi import HttpApi
from warrenmq.spark.options import OptionError, Options
from warrenmq.spark.storage import filesystem_of

if TYPE_CHECKING:
    import pyarrow as pa

SPARE = 10  # a tenth of the window is left for clocks that differ


class Forgotten(RuntimeError):
    """A failure: rows may have been published by an earlier attempt that the exchange does not remember any more."""


def now_ms() -> int:
    return int(time.time() * 1000)


def check_options(options: Options, streaming: bool) -> None:
    """On the driver, before anything runs."""
    if streaming and options.checkpoint_location is None:
        raise OptionError(
            "option 'deduplicate' of a streaming query needs its checkpoint: give option 'checkpointLocation' to the "
            "query itself; a setting of the session does not reach the sink"
        )
    if not streaming and (options.batch_key is None) != (options.batch_began is None):
        raise OptionError(
            "with option 'deduplicate' the options 'batchKey' and 'batchBegan' go together: a job that may be "
            "submitted again has to say when that was first"
        )
    if not options.persistent:
        raise OptionError("option 'deduplicate' needs persistent messages: the ids of others go with a restart")
    if options.exchange is not None:
        memory_of(options, options.exchange)


def memory_of(options: Options, exchange: str) -> dict[str, Any]:
    """What the exchange says of what it remembers."""
    if exchange == "":
        raise OptionError("option 'deduplicate' needs an exchange with a window; the default exchange never has one")
    path = f"/api/exchanges/{quote(options.virtual_host, safe='')}/{quote(exchange, safe='')}"
    status, answer = HttpApi(options).call("GET", path)
    if status == 404:
        raise OptionError(f"option 'deduplicate': there is no exchange '{exchange}' in vhost '{options.virtual_host}'")
    if status != 200 or not isinstance(answer, dict):
        raise BrokerLost(f"exchange '{exchange}' cannot be asked what it remembers: {status}")
    memory = answer.get("deduplication")
    if not isinstance(memory, dict):
        raise OptionError(
            f"option 'deduplicate': exchange '{exchange}' remembers no message ids; on Warren a policy with the key "
            "deduplication-window makes it so, on RabbitMQ nothing does and rows are written at least once"
        )
    return memory


def streaming_batch_began(checkpoint: str, batch: str) -> int:
    """When Spark planned this batch for the first time, in ms since 1970."""
    filesystem, folder = filesystem_of(checkpoint)
    path = f"{folder}/offsets/{batch}"
    try:
        with filesystem.open_input_stream(path) as file:
            text = file.read().decode()
    except FileNotFoundError:
        raise OptionError(
            f"option 'deduplicate': there is no {path}, where Spark notes when batch {batch} began; is option "
            "'checkpointLocation' the address of the checkpoint, with its scheme?"
        ) from None
    for line in text.splitlines():
        if line.startswith("{"):
            began = json.loads(line).get("batchTimestampMs")
            if isinstance(began, int) and began > 0:
                return began
    raise OptionError(f"option 'deduplicate': {path} does not say when batch {batch} began (batchTimestampMs)")


class Watch:
    """A watch over the exchanges of one task, whose rows may have been published from ``began`` (ms since 1970) on."""

    def __init__(self, options: Options, began: int) -> None:
        self.options = options
        self.began = began
        self._exchanges: set[str] = set()

    def over(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The same batches, each after its exchanges have been asked."""
        for batch in batches:
            for exchange in self._named(batch) - self._exchanges:
                self._ask(exchange)
                self._exchanges.add(exchange)
            yield batch

    def ask_again(self) -> None:
        """All rows are out: was everything remembered as long as that took?"""
        for exchange in sorted(self._exchanges):
            self._ask(exchange)

    def _named(self, batch: pa.RecordBatch) -> set[str]:
        default = self.options.exchange or ""
        if "exchange" not in batch.schema.names:
            return {default}
        return {default if name is None else str(name) for name in batch.column("exchange").unique().to_pylist()}

    def _ask(self, exchange: str) -> None:
        memory = memory_of(self.options, exchange)
        window, since = int(memory["window"]), int(memory["since"])
        oldest = max(since, now_ms() - window + window // SPARE)
        if oldest > self.began:
            raise Forgotten(
                f"rows of this batch may have been published from {_shown(self.began)} on, and exchange '{exchange}' "
                f"remembers message ids since {_shown(oldest)} only (deduplication-window {window} ms less a tenth, "
                f"deduplication-max {memory['max']}, {memory['evicted_early']} ids evicted early): whether they were "
                "cannot be told any more. Without option 'deduplicate' they are written, perhaps for the second time"
            )


def _shown(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")
