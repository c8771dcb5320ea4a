"""Requests to etcd's JSON gateway and what its answers say; no I/O.

Duty: the octets of a linearizable read, of a compare-and-swap of a whole value, of leases and of a key bound to one,
and the meaning of an answer. The gateway writes whole numbers as texts and octets in base64. Who sends them, to which
endpoint and how often is ``glue/store.py``; what stands in the values is ``value.py``.

Invariants:
- A read is linearizable, which is etcd's default: nothing here asks for a serializable one.
- Every answer names the etcd that gave it (``store``, its cluster id). One without is no answer.
- A swap that was refused brings what stands there, read in the same transaction.
"""

from __future__ import annotations

import base64
import json
from typing import Final, final


class EtcdError(Exception):
    """An answer that is none: etcd's own words, or what is wrong with it. The request may have been carried out."""


@final
class Request:
    """A body to be posted, and its address."""

    def __init__(self, path: str, body: dict[str, object]) -> None:
        self.path: Final = path
        self.body: Final = json.dumps(body).encode()


@final
class Found:
    """Keys below a prefix with their values, all of one moment."""

    def __init__(self, store: int, values: dict[str, bytes]) -> None:
        self.store: Final = store
        self.values: Final = values


@final
class Swapped:
    """The outcome of a swap: whether the value was written, and if not, what stands there (None: nothing)."""

    def __init__(self, store: int, accepted: bool, current: bytes | None) -> None:
        self.store: Final = store
        self.accepted: Final = accepted
        self.current: Final = current


@final
class Lease:
    """A lease and how many seconds it has left; none when it is over."""

    def __init__(self, store: int, number: int, seconds: int) -> None:
        self.store: Final = store
        self.number: Final = number
        self.seconds: Final = seconds


# --- requests


def read_below(prefix: str) -> Request:
    """All keys that begin with it."""
    last = prefix[:-1] + chr(ord(prefix[-1]) + 1)
    return Request("/v3/kv/range", {"key": _text(prefix), "range_end": _text(last)})


def swap(key: str, base: bytes | None, value: bytes) -> Request:
    """The value, if exactly ``base`` stands there; None: if nothing does."""
    compared: dict[str, object] = {"key": _text(key), "result": "EQUAL"}
    if base is None:
        compared["target"], compared["version"] = "VERSION", "0"
    else:
        compared["target"], compared["value"] = "VALUE", _octets(base)
    written: dict[str, object] = {"requestPut": {"key": _text(key), "value": _octets(value)}}
    read: dict[str, object] = {"requestRange": {"key": _text(key)}}
    return Request("/v3/kv/txn", {"compare": [compared], "success": [written], "failure": [read]})


def put(key: str, value: bytes, lease: int = 0) -> Request:
    """The value, whatever stands there; with a lease it goes when that ends."""
    return Request("/v3/kv/put", {"key": _text(key), "value": _octets(value), "lease": str(lease)})


def delete(key: str) -> Request:
    return Request("/v3/kv/deleterange", {"key": _text(key)})


def grant(seconds: int) -> Request:
    return Request("/v3/lease/grant", {"TTL": str(seconds)})


def keep_alive(lease: int) -> Request:
    return Request("/v3/lease/keepalive", {"ID": str(lease)})


def revoke(lease: int) -> Request:
    return Request("/v3/lease/revoke", {"ID": str(lease)})


# --- answers


def found(status: int, raw: bytes) -> Found:
    answer = _answer(status, raw)
    return Found(_store(answer), _pairs(answer))


def swapped(status: int, raw: bytes) -> Swapped:
    answer = _answer(status, raw)
    store = _store(answer)
    if answer.get("succeeded") is True:
        return Swapped(store, True, None)
    responses = answer.get("responses")
    if not isinstance(responses, list) or len(responses) != 1 or not isinstance(responses[0], dict):
        raise EtcdError("a refused transaction without what stands there")
    ranged = responses[0].get("response_range", {})
    if not isinstance(ranged, dict):
        raise EtcdError("a refused transaction without what stands there")
    current: bytes | None = None
    for value in _pairs(ranged).values():
        current = value
    return Swapped(store, False, current)


def written(status: int, raw: bytes) -> int:
    """Of a put, a deletion or a revocation only who carried it out is of interest."""
    return _store(_answer(status, raw))


def leased(status: int, raw: bytes) -> Lease:
    """Of a grant and of a renewal; the latter is the first line of a stream."""
    answer = _answer(status, raw)
    inner = answer.get("result", answer)
    if not isinstance(inner, dict):
        raise EtcdError(f"no lease: {_shown(raw)}")
    if "error" in inner and inner["error"]:
        raise EtcdError(str(inner["error"]))
    return Lease(_store(inner), _number(inner.get("ID", 0)), _number(inner.get("TTL", 0)))


# --- parts


def _text(key: str) -> str:
    return _octets(key.encode())


def _octets(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


def _answer(status: int, raw: bytes) -> dict[str, object]:
    try:
        answer = json.loads(raw.split(b"\n", 1)[0])
    except ValueError:
        raise EtcdError(f"status {status} and no JSON: {_shown(raw)}") from None
    if not isinstance(answer, dict):
        raise EtcdError(f"status {status} and no object: {_shown(raw)}")
    if status != 200 or "error" in answer:
        raise EtcdError(f"status {status}: {answer.get('error', answer)}")
    return answer


def _store(answer: dict[str, object]) -> int:
    header = answer.get("header")
    if not isinstance(header, dict) or "cluster_id" not in header:
        raise EtcdError("an answer that does not say which etcd gave it")
    return _number(header["cluster_id"])


def _pairs(answer: dict[str, object]) -> dict[str, bytes]:
    """A range of nothing has no list at all, and an empty value no field."""
    listed = answer.get("kvs", [])
    values: dict[str, bytes] = {}
    if not isinstance(listed, list):
        raise EtcdError("keys that are no list")
    for one in listed:
        if not isinstance(one, dict) or "key" not in one:
            raise EtcdError("a key that is none")
        values[_decoded(one["key"]).decode(errors="replace")] = _decoded(one.get("value", ""))
    return values


def _decoded(text: object) -> bytes:
    try:
        return base64.b64decode(str(text), validate=True)
    except ValueError:
        raise EtcdError(f"no base64: {str(text)[:80]!r}") from None


def _number(value: object) -> int:
    try:
        return int(str(value))
    except ValueError:
        raise EtcdError(f"no number: {str(value)[:80]!r}") from None


def _shown(raw: bytes) -> str:
    return repr(raw[:120])
