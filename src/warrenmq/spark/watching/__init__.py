"""watch: what is overdue in a journal, told while it is written.

folders    which files a journal has now, and which rows of a segment are in which of them
source     the journal as a stream: each row once, however its files are joined meanwhile
rows       rows of the journal's files as the few that a watch looks at
judging    what is waited for, and what is a finding, by the journal's own time
state      that, kept by Spark from batch to batch
findings   each finding once: in a table, and as a message
job        all of it
"""

from __future__ import annotations

from warrenmq.spark.watching.job import watch

__all__ = ["watch"]
