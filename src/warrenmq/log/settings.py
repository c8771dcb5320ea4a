"""What may be set about the log, and whom it tells."""

from __future__ import annotations

from typing import final

from mypy_extensions import i64, mypyc_attr


@final
class LogSettings:
    """The sizes and times that the log works with."""

    def __init__(
        self,
        segment_bytes: i64 = 64 << 20,
        sync_delay_ms: i64 = 50,
        commit_bytes: i64 = 1 << 20,
        chunk_bytes: i64 = 256 << 10,
        checkpoint_bytes: i64 = 4 << 20,
        retry_ms: i64 = 1000,
        zero_ahead: bool = True,
        slack_bytes: i64 = -1,
        reserve_bytes: i64 = 4 << 20,
        held_bytes: i64 = -1,
    ) -> None:
        self.segment_bytes = segment_bytes  # a segment is closed by the first batch that takes it past this
        self.sync_delay_ms = sync_delay_ms  # how long a batch that nobody waits for may stay unsynced
        self.commit_bytes = commit_bytes  # a batch this large is committed although nobody waits
        self.chunk_bytes = chunk_bytes  # longer bodies are stored in chunks
        self.checkpoint_bytes = checkpoint_bytes  # settles in memory before they go to the ledgers
        self.retry_ms = retry_ms  # how often a failed disk is tried again
        self.zero_ahead = zero_ahead
        self.reserve_bytes = reserve_bytes  # room held back for a full disk
        # files that the journal has yet to read are kept as they are, up to this much
        self.held_bytes = held_bytes if held_bytes >= 0 else 4 * segment_bytes
        # files may exceed twice the live data by this much before a segment is compacted
        self.slack_bytes = slack_bytes if slack_bytes >= 0 else 2 * segment_bytes


@mypyc_attr(allow_interpreted_subclasses=True)
class Listener:
    """The broker, as the log tells it what happened. All on the broker's own thread."""

    def synced(self, batch: i64) -> None:
        """Every turn up to this one is on disk, on every node that counts. Said once more with the same turn when
        ``Log.promised`` alone has moved."""

    def failed(self, batch: i64, reason: str) -> None:
        """The turns behind the last synced one, up to this one, could not be written, not even to a new file.

        Nothing of them is promised: nack, return what is mandatory, and ``settle`` what is taken out of its queues
        before this returns. What is not settled stays, and is written when the disk comes back. No ``append`` until
        ``recovered_service``.
        """

    def recovered_service(self) -> None:
        """The disk takes writes again; ``synced`` for what was carried over has been called."""

    def damaged(self, address: i64, problem: str) -> None:
        """A scan found that the record at this address does not check. It stays held; reading it will be refused."""

    def segment_damaged(self, segment: i64, problem: str) -> None:
        """More than bodies does not check in this segment as it stands on disk."""
