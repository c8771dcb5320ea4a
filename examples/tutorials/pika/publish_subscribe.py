"""Tutorial 3: every subscriber gets its own copy."""

import os

import pika

url = os.environ.get("WARREN_URL", "amqp://guest:guest@127.0.0.1:5672/")

with pika.BlockingConnection(pika.URLParameters(url)) as connection:
    channel = connection.channel()
    channel.exchange_declare("news", exchange_type="fanout")

    queues = {}
    for subscriber in ("radio", "paper"):
        queues[subscriber] = channel.queue_declare("", exclusive=True).method.queue  # the broker chooses a name
        channel.queue_bind(queues[subscriber], "news")

    channel.basic_publish(exchange="news", routing_key="", body="it rains")

    for subscriber, queue in queues.items():
        for _method, _properties, body in channel.consume(queue, auto_ack=True):
            print(subscriber, "got", body.decode())
            break
        channel.cancel()
