"""Tutorial 4: a queue gets the keys it is bound with, and no others."""

import os

import pika

url = os.environ.get("WARREN_URL", "amqp://guest:guest@127.0.0.1:5672/")
wanted = {"pager": ["error"], "archive": ["info", "warning", "error"]}

with pika.BlockingConnection(pika.URLParameters(url)) as connection:
    channel = connection.channel()
    channel.exchange_declare("alerts", exchange_type="direct")

    queues = {}
    for name, levels in wanted.items():
        queues[name] = channel.queue_declare("", exclusive=True).method.queue
        for level in levels:
            channel.queue_bind(queues[name], "alerts", routing_key=level)

    for level in ("info", "debug", "error"):
        channel.basic_publish(exchange="alerts", routing_key=level, body="disk almost full")

    for name, queue in queues.items():
        for method, _properties, body in channel.consume(queue, auto_ack=True):
            print(f"{name} got {method.routing_key}: {body.decode()}")
            if method.routing_key == "error":
                break
        channel.cancel()
