"""The audit as one page that a person would rather look at than read.

facts      from the audit's tables to a few hundred values, read with Spark
drawing    charts as SVG
page       the facts as one HTML file that needs nothing else
"""

from __future__ import annotations

from warrenmq.spark.reporting.facts import Facts, gather
from warrenmq.spark.reporting.page import page

__all__ = ["Facts", "gather", "page"]
