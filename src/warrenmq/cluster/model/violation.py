"""What the model says when something that must hold does not."""

from __future__ import annotations


class Violation(Exception):
    """Something that must hold, and does not."""
