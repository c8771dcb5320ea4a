"""What `warren log inspect` found, as data for `--json`. Not here: looking (`warrenmq.log.examine`), and the words."""

from __future__ import annotations

from typing import Any

from warrenmq.log.examine import Facts, RecordFacts


def inspected(facts: Facts, clean: bool, held: int, definitions: bool, listed: list[RecordFacts]) -> dict[str, Any]:
    """All that is printed, by name."""
    found = facts.found
    segments = ("number", "generation", "files", "bytes", "records", "live", "live_bytes", "ledger")
    shown: dict[str, Any] = {
        "log": f"{found.manifest.log_id:016x}",
        "format": int(found.manifest.version),
        "epoch": int(found.recovered.epoch),
        "clean": clean,
        "definitions": len(found.recovered.definitions),
        "queues_with_messages": len(found.recovered.queues),
        "held": held,
        "torn_tail": found.recovered.cut or None,
        "segments": [{name: int(getattr(one, name)) for name in segments} for one in facts.segments],
    }
    if definitions:
        shown["defined"] = [{"kind": kind, "key": key} for kind, key in found.recovered.definitions]
    if listed:
        fields = ("segment", "record", "chunk", "batch", "offset", "size", "holders")
        shown["records"] = [{name: getattr(one, name) for name in fields} for one in listed]
    return shown
