"""Connections from Spark's processes to the broker.

Duty: connect as the options say, try again with growing pauses, and say clearly what failed without ever saying the
password. Not here: what is done over the connection.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable

from warrenmq.client import ClientError, ConnectError, Connection, ConnectionClosed
from warrenmq.spark.options import Options

FIRST_PAUSE = 0.2
LONGEST_PAUSE = 10.0
STALLED = 60.0  # seconds without a message that must come


class BrokerLost(RuntimeError):
    """The broker cannot be reached (any more). Spark repeats the task; the text is one line."""


def connect(options: Options, purpose: str, sleep: Callable[[float], None] = time.sleep) -> Connection:
    """A connection, after at most ``retries`` further attempts. A refused login is not tried again."""
    pause = FIRST_PAUSE
    for attempt in range(options.retries + 1):
        try:
            return Connection(
                host=options.host,
                port=options.port,
                virtual_host=options.virtual_host,
                username=options.username,
                password=options.password(),
                ssl=tls_context(options),
                heartbeat=options.heartbeat,
                connection_name=f"spark {purpose}",
                timeout=options.connect_timeout,
            )
        except (ConnectError, ConnectionClosed) as error:
            if error.code:  # the broker answered: asking again gets the same answer
                raise BrokerLost(f"{options.address} refused the connection: {error}") from None
            if attempt == options.retries:
                tries = f"after {attempt + 1} attempts" if attempt else "at the first attempt"
                raise BrokerLost(f"no connection to the broker at {options.address} {tries}: {error}") from None
        except ClientError as error:
            if attempt == options.retries:
                raise BrokerLost(f"the broker at {options.address} does not answer: {error}") from None
        sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE)
    raise AssertionError("unreachable")


def is_warren(connection: Connection) -> bool:
    return "warren_version" in connection.server_properties


def tls_context(options: Options) -> ssl.SSLContext | None:
    if not options.tls:
        return None
    context = ssl.create_default_context(cafile=options.tls_ca_file)
    if not options.tls_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if options.tls_cert_file is not None:
        context.load_cert_chain(options.tls_cert_file, options.tls_key_file)
    return context
