"""All misuse cases in one table."""

from __future__ import annotations

from tests.conformance.misuse_channels import CHANNELS, MODES
from tests.conformance.misuse_content import CONTENT
from tests.conformance.misuse_dialogues import DIALOGUES
from tests.conformance.misuse_handshake import FRAMES, HANDSHAKE
from tests.conformance.misuse_kinds import KIND_CASES
from tests.conformance.misuse_messages import CONSUME, PUBLISH
from tests.conformance.misuse_topology import EXCHANGE_CASES, QUEUE_CASES
from tests.conformance.steps import Case

GROUPS: dict[str, list[Case]] = {
    "handshake": HANDSHAKE,
    "frames": FRAMES,
    "channels": CHANNELS,
    "modes": MODES,
    "exchanges": EXCHANGE_CASES,
    "queues": QUEUE_CASES,
    "publish": PUBLISH,
    "content": CONTENT,
    "dialogues": DIALOGUES,
    "consume": CONSUME,
    "kinds": KIND_CASES,
}
MISUSE: list[Case] = [each for group in GROUPS.values() for each in group]
assert len({each.id for each in MISUSE}) == len(MISUSE), "two cases have one name"
