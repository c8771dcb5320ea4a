"""Tutorial 2: tasks that survive a restart of the broker and the death of a worker."""

import os

import pika

url = os.environ.get("WARREN_URL", "amqp://guest:guest@127.0.0.1:5672/")

with pika.BlockingConnection(pika.URLParameters(url)) as connection:
    office = connection.channel()
    office.queue_declare("tasks", durable=True)
    office.confirm_delivery()  # from here on basic_publish returns when the broker has the message on disk
    persistent = pika.BasicProperties(delivery_mode=pika.DeliveryMode.Persistent)
    for number in (1, 2, 3):
        office.basic_publish("", "tasks", f"task {number}", persistent)
    print("3 tasks are on disk")

    first = connection.channel()
    first.basic_qos(prefetch_count=1)  # one task at a time
    for _method, _properties, body in first.consume("tasks"):
        print(f"the first worker takes {body.decode()} and dies")
        break
    first.close()  # without an acknowledgement

    second = connection.channel()
    second.basic_qos(prefetch_count=1)
    for method, _properties, body in second.consume("tasks"):
        again = " (redelivered)" if method.redelivered else ""
        print(f"the second worker does {body.decode()}{again}")
        second.basic_ack(method.delivery_tag)
        if body == b"task 3":
            break
