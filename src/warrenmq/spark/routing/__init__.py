"""``route``: what the broker would make of every message of a table, by its own code.

In reading order: ``definitions.py`` (the topology, as RabbitMQ exports it), ``path.py`` (the verdict on one message),
``relevance.py`` and ``words.py`` (what of a message can change it), ``judge.py`` (verdicts by the batch), then the two
ways over a table: ``table.py`` (any DataFrame), and ``files.py``, ``reader.py``, ``blocks.py``, ``facts.py`` (Parquet
files, in one pass); and ``outcome.py`` (the columns a user sees).
"""

from warrenmq.spark.routing.definitions import InputError, load_definitions
from warrenmq.spark.routing.files import route_files
from warrenmq.spark.routing.table import route

__all__ = ["InputError", "load_definitions", "route", "route_files"]
