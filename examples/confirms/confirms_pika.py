"""Publisher confirms and the mandatory flag, with pika: who learns what, and in which order.

    python confirms_pika.py transient     # acked when enqueued, long before the consumer has finished
    python confirms_pika.py unroutable    # acked, although nobody will ever see it
    python confirms_pika.py mandatory     # returned (312 NO_ROUTE), then acked
    python confirms_pika.py persistent    # acked once it is on the disk

Works the same against Warren and RabbitMQ; --url says where (default amqp://guest:guest@localhost/).
"""

from __future__ import annotations

import argparse
import threading
import time
from datetime import datetime

import pika
from pika.adapters.select_connection import SelectConnection
from pika.channel import Channel
from pika.frame import Method
from pika.spec import Basic, BasicProperties

EXCHANGE = "company.e.whatever-exchange"
QUEUE = "company.q.whatever-queue"
BOUND_KEY = "whatever.a.a"
FREE_KEY = "whatever.b.b"

_lock = threading.Lock()


def log(level: str, text: str) -> None:
    stamp = datetime.now().strftime("%d/%m/%Y %H:%M:%S.%f")[:-3]
    with _lock:
        print(f"[{stamp}] {'[' + level + ']':8}{text}", flush=True)


class Consumer(threading.Thread):
    """Takes a message and works on it; `idle` is set whenever it has nothing in hand."""

    def __init__(self, url: str, work: float) -> None:
        super().__init__(daemon=True)
        self.url, self.work = url, work
        self.connected, self.finished = threading.Event(), threading.Event()

    def run(self) -> None:
        channel = pika.BlockingConnection(pika.URLParameters(self.url)).channel()
        channel.exchange_declare(EXCHANGE, "topic", durable=True)
        channel.queue_declare(QUEUE, durable=True)
        channel.queue_purge(QUEUE)
        channel.queue_bind(QUEUE, EXCHANGE, BOUND_KEY)
        channel.basic_consume(QUEUE, self.on_message)
        log("LOG", "Consumer connected, awaiting for messages")
        self.connected.set()
        channel.start_consuming()

    def on_message(self, channel: Channel, method: Basic.Deliver, _: BasicProperties, __: bytes) -> None:
        log("LOG", "Consumer received message, working...")
        time.sleep(self.work)
        log("LOG", "Consumer processed message")
        channel.basic_ack(method.delivery_tag)
        self.finished.set()


class Publisher:
    """One message in confirm mode; the callbacks fire in the order in which the broker answered."""

    def __init__(self, url: str, routing_key: str, mandatory: bool, persistent: bool) -> None:
        self.routing_key, self.mandatory = routing_key, mandatory
        self.properties = BasicProperties(headers={})
        if persistent:
            self.properties.delivery_mode = 2
        self.connection = SelectConnection(pika.URLParameters(url), on_open_callback=self.on_open)

    def run(self) -> None:
        self.connection.ioloop.start()

    def on_open(self, connection: SelectConnection) -> None:
        connection.channel(on_open_callback=self.on_channel)

    def on_channel(self, channel: Channel) -> None:
        log("LOG", "Publisher connected")
        channel.add_on_return_callback(self.on_return)
        channel.confirm_delivery(self.on_confirm, callback=lambda _: self.publish(channel))

    def publish(self, channel: Channel) -> None:
        log("LOG", "Publisher about to publish message")
        channel.basic_publish(EXCHANGE, self.routing_key, b"test", self.properties, mandatory=self.mandatory)

    def on_return(self, _: Channel, method: Basic.Return, properties: BasicProperties, body: bytes) -> None:
        present = {name: value for name, value in vars(properties).items() if value is not None}
        log(
            "ERROR",
            f"Message returned back to publisher {method.reply_code} {method.reply_text} "
            f"exchange={method.exchange} routing_key={method.routing_key} properties={present} content={body!r}",
        )

    def on_confirm(self, frame: Method) -> None:
        kind = "acked" if isinstance(frame.method, Basic.Ack) else "nacked"
        log("LOG", f"Message {kind} on publisher side")
        self.connection.add_on_close_callback(lambda *_: self.connection.ioloop.stop())
        self.connection.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scene", choices=["transient", "unroutable", "mandatory", "persistent"])
    parser.add_argument("--url", default="amqp://guest:guest@localhost/")
    parser.add_argument("--work", type=float, default=5.0, help="seconds the consumer works on a message")
    options = parser.parse_args()
    consumer = Consumer(options.url, options.work)
    consumer.start()
    consumer.connected.wait()
    routable = options.scene in ("transient", "persistent")
    Publisher(
        options.url, BOUND_KEY if routable else FREE_KEY, options.scene == "mandatory", options.scene == "persistent"
    ).run()
    if routable:
        consumer.finished.wait()


if __name__ == "__main__":
    main()
