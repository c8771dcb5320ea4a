"""What can go wrong for a caller of the client."""

from __future__ import annotations


class ClientError(Exception):
    """Any error that this client raises."""


class ConnectError(ClientError):
    """No connection came about: nobody listens, TLS failed, or the login was refused (then ``code`` says why)."""

    def __init__(self, text: str, code: int = 0) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


class Closed(ClientError):
    """The end of what a call was made on, with what the broker said of it: the code, and the method it was about."""

    def __init__(self, code: int, text: str, class_id: int = 0, method_id: int = 0) -> None:
        super().__init__(f"{code} {text}" if code else text)
        self.code = code
        self.text = text
        self.class_id = class_id
        self.method_id = method_id


class ConnectionClosed(Closed):
    """The connection is gone. ``code`` 0: the socket ended without a word."""


class ChannelClosed(Closed):
    """The broker closed the channel; the connection lives on."""


class Timeout(ClientError):
    """The broker did not answer in time."""
