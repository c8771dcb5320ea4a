"""Connections from Spark's processes to the broker.

Duty: connect as the options say, to one address after the other, try again with growing pauses, and say clearly what
failed without ever saying the password. Not here: what is done over the connection.
"""

from __future__ import annotations

import os
import ssl

from warrenmq.client import ClientError, ConnectError, Connection, ConnectionClosed
from warrenmq.client.line import Line
from warrenmq.spark.addresses import Address, answered, in_turn
from warrenmq.spark.options import OptionError, Options
from warrenmq.spark.patience import Patience
from warrenmq.spark.secret import password
from warrenmq.wire.replies import CONNECTION_FORCED

STALLED = 60.0  # seconds without a message that must come


class BrokerLost(RuntimeError):
    """The broker cannot be reached (any more). Spark repeats the task; the text is one line."""


def connect(options: Options, purpose: str, patience: Patience | None = None) -> Connection:
    """A connection, sooner or later, to the first address that gives one. A refused login is not tried again."""
    patience = patience or Patience(options)
    context = tls_context(options) if options.tls else None
    while True:
        failures: dict[Address, ClientError] = {}
        for address in in_turn(options.hosts):
            try:
                connection = Connection(
                    host=address.host,
                    port=address.port,
                    virtual_host=options.virtual_host,
                    username=options.username,
                    password=password(options),
                    ssl=context,
                    server_name=options.tls_server_name,
                    heartbeat=options.heartbeat,
                    connection_name=f"spark {purpose}",
                    timeout=options.connect_timeout,
                )
            except ClientError as error:
                failures[address] = error
            else:
                answered(options.hosts, address)
                return connection
        why = "; ".join(_reason(options, address, error) for address, error in failures.items())
        refusing = [str(address) for address, error in failures.items() if is_refusal(error)]
        if refusing:
            raise BrokerLost(f"{', '.join(refusing)} refused the connection: {why}")
        if not patience.again():
            raise BrokerLost(f"no connection to the broker at {options.address} {patience.tried}: {why}")


def is_refusal(error: ClientError) -> bool:
    """The broker answered, or its certificate is not the one we want: asking again gets the same answer."""
    if isinstance(_cause(error), ssl.SSLCertVerificationError):
        return True
    return isinstance(error, (ConnectError, ConnectionClosed)) and error.code not in (0, CONNECTION_FORCED)


def _cause(error: ClientError) -> BaseException | None:
    """What it was raised from; compiled code keeps that as the context only."""
    return error.__cause__ or error.__context__


def _reason(options: Options, address: Address, error: ClientError) -> str:
    reason: BaseException = error
    cause = _cause(error)
    if isinstance(cause, OSError):
        reason = cause
    return str(reason) if len(options.hosts) == 1 else f"{address}: {reason}"


def is_warren(connection: Line) -> bool:
    return "warren_version" in connection.server_properties


def tls_context(options: Options) -> ssl.SSLContext:
    """Made where the code runs, from files that must be there: a worker needs them too."""
    for name, path in (
        ("tlsCaFile", options.tls_ca_file),
        ("tlsCertFile", options.tls_cert_file),
        ("tlsKeyFile", options.tls_key_file),
    ):
        if path is not None:
            _check_readable(name, path)
    try:
        context = ssl.create_default_context(cafile=options.tls_ca_file)
    except ssl.SSLError:
        raise OptionError(f"tlsCaFile {options.tls_ca_file} holds no certificate in PEM form") from None
    if not options.tls_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if options.tls_cert_file is not None:
        try:
            context.load_cert_chain(options.tls_cert_file, options.tls_key_file, password=_no_passphrase)
        except ssl.SSLError as error:
            files = f"tlsCertFile {options.tls_cert_file} and tlsKeyFile {options.tls_key_file or '(in the same file)'}"
            raise OptionError(f"{files} are no certificate with its key, in PEM form: {error.reason}") from None
    return context


def _no_passphrase() -> str:
    """Without this OpenSSL would ask at the terminal, and a worker would wait there for ever."""
    return ""


def _check_readable(name: str, path: str) -> None:
    try:
        os.close(os.open(path, os.O_RDONLY))
    except OSError as error:
        raise OptionError(f"{name} {path} cannot be read here: {error.strerror}") from None
