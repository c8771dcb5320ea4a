"""Why a connection did not come about, in words for a person.

Duty: one error into a part of a line: OpenSSL's reason without brackets and the place in its source. Not here: which
address it was.
"""

from __future__ import annotations

import ssl
from typing import Final

NO_TLS: Final = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "UNKNOWN_PROTOCOL")


def why(error: OSError) -> str:
    if not isinstance(error, ssl.SSLError):
        return error.strerror or str(error)
    reason = str(getattr(error, "reason", None) or error)  # one that OpenSSL did not raise has none
    if reason in NO_TLS:
        return "the other side speaks no TLS"
    verify = getattr(error, "verify_message", "")
    return reason + (f": {verify}" if verify else "")
