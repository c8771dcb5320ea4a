"""Connections from Spark's processes to the broker.

Duty: connect as the options say, try again with growing pauses, and say clearly what failed without ever saying the
password. Not here: what is done over the connection.
"""

from __future__ import annotations

import ssl

from warrenmq.client import ClientError, ConnectError, Connection, ConnectionClosed
from warrenmq.spark.options import Options
from warrenmq.spark.patience import Patience

STALLED = 60.0  # seconds without a message that must come


class BrokerLost(RuntimeError):
    """The broker cannot be reached (any more). Spark repeats the task; the text is one line."""


def connect(options: Options, purpose: str, patience: Patience | None = None) -> Connection:
    """A connection, sooner or later. A refused login is not tried again."""
    patience = patience or Patience(options)
    while True:
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
            if not patience.again():
                where = f"{options.address} {patience.tried}"
                raise BrokerLost(f"no connection to the broker at {where}: {error}") from None
        except ClientError as silent:
            if not patience.again():
                raise BrokerLost(f"the broker at {options.address} does not answer: {silent}") from None


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
