"""How a message came from one exchange to what it reached there: the binding that matched, or what did instead.

Duty: to say it, as the journal has it: JSON, which a route's text is made of. Pure. Not here: which hops a message
takes (``walk.py``).
"""

from __future__ import annotations

import json
from typing import Final, final

from mypy_extensions import i64

from warrenmq.broker.records import Binding, Destination, Exchange
from warrenmq.wire.fields import to_python

LONGEST: Final = 4096  # octets of a hop that is told with the arguments of its binding


@final
class Hop:
    """A step of a walk: from an exchange to a queue or to another exchange."""

    def __init__(self, source: Exchange, binding: Binding | None, before: Hop | None, bindings: i64 = 1) -> None:
        self.source: Final = source
        self.binding: Final = binding  # None: its alternate exchange, a decorator, or the default exchange's names
        self.before: Final = before  # how it came to the source; None: it was published there
        self.bindings: Final = bindings  # of the source that lead there: ``binding`` is the first that was found

    def text(self, destination: Destination, longest: i64) -> bytes:
        """All hops from the exchange of the publish to ``destination``, one behind the other; empty: they would be
        longer than that. Thousands of exchanges may be bound one behind the other: there is no recursion here."""
        if self.before is None:
            return self._text(destination)
        texts: list[bytes] = []
        size: i64 = 0
        hop: Hop | None = self
        while hop is not None:
            text = hop._text(destination)
            size += len(text) + 1
            if size > longest:
                return b""
            texts.append(text)
            destination = hop.source
            hop = hop.before
        texts.reverse()
        return b",".join(texts)

    def _text(self, destination: Destination) -> bytes:
        binding = self.binding
        name = self.source.name.name
        if binding is not None and self.bindings == 1:
            if not binding.told:
                binding.told = _of_binding(name, binding, 1)
            return binding.told
        if binding is not None:
            return _of_binding(name, binding, self.bindings)
        if not name:
            return json.dumps({"exchange": "", "key": destination.name.name}).encode()
        if isinstance(destination, Exchange) and destination.name.name == self.source.alternate:
            return json.dumps({"exchange": name, "alternate": destination.name.name}).encode()
        return json.dumps({"exchange": name, "decorator": True}).encode()


def _of_binding(source: str, binding: Binding, bindings: i64) -> bytes:
    said: dict[str, object] = {"exchange": source, "key": binding.key}
    if bindings > 1:
        said["bindings"] = int(bindings)
    if not binding.arguments:
        return json.dumps(said).encode()
    whole = json.dumps({**said, "arguments": to_python(binding.arguments)}, default=str).encode()
    return whole if len(whole) <= LONGEST else json.dumps(said).encode()
