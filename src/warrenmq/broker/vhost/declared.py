"""Exchanges, queues and bindings as they stand in the definitions.

Duty: the record of each and its key. Field tables keep their wire types: they are stored encoded. Not here: when it is
written (``vhost.py``), and reading it all at start (``topology.py``).
"""

from __future__ import annotations

from warrenmq.broker.access.access import store_key
from warrenmq.broker.queue.queue import Queue
from warrenmq.broker.records import Binding, Exchange
from warrenmq.broker.services.store import DefinitionStore
from warrenmq.wire.fields import Table, decode_table, encode_table


def put_exchange(store: DefinitionStore, vhost: str, exchange: Exchange) -> None:
    store.put(
        "exchange",
        store_key([vhost, exchange.name.name]),
        {
            "vhost": vhost,
            "name": exchange.name.name,
            "type": exchange.type,
            "auto_delete": exchange.auto_delete,
            "internal": exchange.internal,
            "arguments": pack(exchange.arguments),
            "scratches": exchange.scratches,
            "user": exchange.user,
        },
    )


def put_queue(store: DefinitionStore, vhost: str, queue: Queue) -> None:
    value: dict[str, object] = {
        "vhost": vhost,
        "name": queue.name.name,
        "id": int(queue.id),
        "identity": queue.declared.identity,
        "auto_delete": queue.declared.auto_delete,
        "arguments": pack(queue.arguments),
    }
    if queue.paused:
        value["paused"] = True
    store.put("queue", store_key([vhost, queue.name.name]), value)


def put_binding(store: DefinitionStore, vhost: str, binding: Binding) -> None:
    store.put("binding", _binding_key(vhost, binding), _binding_value(vhost, binding))


def delete_binding(store: DefinitionStore, vhost: str, binding: Binding) -> None:
    store.delete("binding", _binding_key(vhost, binding))


def pack(table: Table) -> str:
    return encode_table(table).hex()


def unpack(value: object) -> Table:
    return decode_table(bytes.fromhex(str(value)), 0)[0]


def _binding_key(vhost: str, binding: Binding) -> str:
    destination = binding.destination.name
    return store_key(
        [
            vhost,
            binding.source.name.name,
            destination.kind,
            destination.name,
            binding.key,
            pack(dict(sorted(binding.arguments.items()))),
        ]
    )


def stored_binding_key(value: dict[str, object]) -> str:
    """The key under which this value is stored."""
    names = [str(value[name]) for name in ("vhost", "source", "kind", "destination", "key")]
    return store_key([*names, pack(dict(sorted(unpack(value["arguments"]).items())))])


def _binding_value(vhost: str, binding: Binding) -> dict[str, object]:
    return {
        "vhost": vhost,
        "source": binding.source.name.name,
        "kind": binding.destination.name.kind,
        "destination": binding.destination.name.name,
        "key": binding.key,
        "arguments": pack(binding.arguments),
    }
