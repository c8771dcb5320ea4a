"""How many messages wait in queues.

Duty: ask the broker, and ask again when it goes away meanwhile: this is planning, which Spark does not repeat as it
repeats a task. Not here: taking the messages (``leased.py``, ``plain.py``).
"""

from __future__ import annotations

from warrenmq.client import ChannelClosed, ConnectionClosed, Timeout
from warrenmq.spark.connect import BrokerLost, connect
from warrenmq.spark.options import OptionError, Options
from warrenmq.spark.patience import Patience


def waiting(options: Options, names: list[str]) -> dict[str, int]:
    """How many messages are ready in each queue."""
    patience = Patience(options)
    while True:
        connection = connect(options, "queue planning")
        try:
            channel = connection.channel()
            return {name: channel.queue_declare(name, passive=True).int("message_count") for name in names}
        except ChannelClosed as closed:
            raise OptionError(f"queue cannot be read: {closed.text}") from None
        except (ConnectionClosed, Timeout) as lost:
            connection.abort()  # no goodbye: nobody would answer it
            if not patience.again():
                raise BrokerLost(f"the connection to {options.address} was lost: {lost}") from None
        finally:
            connection.close()
