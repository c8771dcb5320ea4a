"""How far a streaming query is behind.

Duty: the figures that readers put into a query's progress. Spark asks a Python source for its latest offset and shows
it there as text, and for nothing else: it has no place for a source's own numbers, in the progress or in its pages. So
the offset reported carries, beside the streams' ends, ``behind``: how many messages of each stream or queue the batch
that was just planned leaves for later. Not here: counting them (``stream.py``, ``leased.py``, ``plain.py``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def lag(query: Any) -> dict[str, int]:
    """How many messages of each stream and queue the query had not read when it planned its last batch.

    ``query`` is a streaming query, its ``lastProgress``, or the ``progress`` that a listener is given. Empty as long as
    there is no progress, and with Spark before 4.2, which does not ask.
    """
    progress = query if isinstance(query, Mapping) or hasattr(query, "sources") else query.lastProgress
    if progress is None:
        return {}
    sources = progress["sources"] if isinstance(progress, Mapping) else progress.sources
    found: dict[str, int] = {}
    for source in sources:
        text = source.get("latestOffset") if isinstance(source, Mapping) else source.latestOffset
        for name, count in _behind(text).items():
            found[name] = max(count, found.get(name, 0))  # one stream read twice in one query
    return found


def _behind(text: object) -> dict[str, int]:
    """Empty for a source that is not ours."""
    try:
        offset = json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return {}
    behind = offset.get("behind") if isinstance(offset, Mapping) else None
    return {str(name): int(count) for name, count in behind.items()} if isinstance(behind, Mapping) else {}
