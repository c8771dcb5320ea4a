"""``route``: what the broker would make of every message of a table, by its own code.

In reading order: ``definitions.py`` (the topology, as RabbitMQ exports it), ``warrenmq.supposing`` (``path.py``, the
verdict on one message; ``relevance.py`` and ``words.py``, what of it can change that), ``judge.py`` (verdicts by the
batch); ``ids.py``, ``lexicon.py``, ``facts.py`` and ``blocks.py`` (columns of messages in Arrow, each distinct one
judged once); then the two ways over a table: ``table.py`` and ``batches.py`` (any DataFrame), ``files.py`` and
``reader.py`` (Parquet files); and ``outcome.py`` (the columns a user sees).
"""

from warrenmq.spark.routing.definitions import InputError, load_definitions
from warrenmq.spark.routing.files import route_files
from warrenmq.spark.routing.table import route

__all__ = ["InputError", "load_definitions", "route", "route_files"]
