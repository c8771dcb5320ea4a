"""The audit: the whole life of every message from a journal's files, as tables, and what of it is missing.

listing    which files there are, which of them count, what lies between them
reading    the files' rows as a table of events; a file that is no journal is named
kinds      what the events' names stand for
lives      one row for each message and queue, one for each record: sums that can be added to
state      these rows kept in a folder, so that the next audit reads only what is new
holes      why something may be missing: files that are not there, gaps that the journal tells of
views      what the publisher was told and what the consumers did, in words; one row a message
tables     what is asked for: unaccounted, unroutable, redelivered, dead-lettered, doubled, latency, ledger
job        all of it, one after the other
"""

from __future__ import annotations

from warrenmq.spark.auditing.job import Audit, audit

__all__ = ["Audit", "audit"]
