"""Tutorial 1: one message through one queue."""

import os

import pika

url = os.environ.get("WARREN_URL", "amqp://guest:guest@127.0.0.1:5672/")

with pika.BlockingConnection(pika.URLParameters(url)) as connection:
    channel = connection.channel()
    channel.queue_declare("hello")
    channel.basic_publish(exchange="", routing_key="hello", body="good morning")
    print("sent good morning")

    for _method, _properties, body in channel.consume("hello", auto_ack=True):
        print("received", body.decode())
        break
