"""Tutorial 5: patterns over keys of several words."""

import os

import pika

url = os.environ.get("WARREN_URL", "amqp://guest:guest@127.0.0.1:5672/")
patterns = {"Europe": "europe.#", "umbrellas": "*.*.rain"}

with pika.BlockingConnection(pika.URLParameters(url)) as connection:
    channel = connection.channel()
    channel.exchange_declare("weather", exchange_type="topic")

    queues = {}
    for name, pattern in patterns.items():
        queues[name] = channel.queue_declare("", exclusive=True).method.queue
        channel.queue_bind(queues[name], "weather", routing_key=pattern)

    for key in ("europe.rome.sun", "asia.tokyo.rain", "asia.tokyo.sun", "europe.oslo.rain"):
        channel.basic_publish(exchange="weather", routing_key=key, body="")

    for name, queue in queues.items():
        for method, _properties, _body in channel.consume(queue, auto_ack=True):
            print(name, "got", method.routing_key)
            if method.routing_key == "europe.oslo.rain":
                break
        channel.cancel()
