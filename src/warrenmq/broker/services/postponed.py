"""The way to say that a question cannot be answered in this turn: it is asked again in the next ones."""


class Postponed(Exception):
    """The exception of a method that may be taken again from its beginning (``again.py``)."""
