"""The durable log: segments, group commit, recovery, compaction."""
