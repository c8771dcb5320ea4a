"""A batch from another node, looked at whole before anything is done with it.

Duty: that its records are whole and its payload's sum is right, and where its records stand. Its place in the log is
the replica's business.
"""

from __future__ import annotations

from librt.vecs import append, vec
from mypy_extensions import i32, i64

from warrenmq.log.batch import Sealed
from warrenmq.log.format import LogError, payload_crc
from warrenmq.log.record import WHOLE, check, number_of, record_size, written_head
from warrenmq.log.shipping import ShippedBatch
from warrenmq.log.sums import Sums, chained


def checked(sums: Sums, seed: i64, batch: ShippedBatch) -> Sealed:
    """As this node will write it. LogError when anything of it is not as it was written."""
    data = batch.messages
    heads = seed
    offsets = vec[i32]()
    at: i64 = 0
    end: i64 = len(data)
    while at < end:
        size = record_size(data, at)
        if size <= 0 or at + size > end or check(sums, data, at, size) != WHOLE:
            raise _refused(batch)
        if number_of(data, at) != batch.first_record + len(offsets):
            raise _refused(batch)
        heads = chained(heads, written_head(data, at, size))
        offsets = append(offsets, i32(at))
        at += size
    if len(offsets) != batch.records or payload_crc(heads, batch.changes) != batch.sum:
        raise _refused(batch)
    sealed = Sealed(batch.segment, batch.first_record, offsets, data, heads, batch.changes, batch.number, batch.time)
    sealed.at = batch.offset
    sealed.epoch = batch.epoch
    sealed.sum = batch.sum
    return sealed


def _refused(batch: ShippedBatch) -> LogError:
    return LogError(f"the batch at {batch.segment}, {batch.offset} does not check: it was changed on its way")
