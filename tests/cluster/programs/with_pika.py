"""What test_clients.py expects of every client, with pika. Arguments: QUEUE HOST:PORT HOST:PORT ..."""

import sys
import time

import pika

queue, *places = sys.argv[1:]
hosts = [pika.ConnectionParameters(host, int(port)) for host, port in (one.split(":") for one in places)]
number = 0
while True:
    try:
        with pika.BlockingConnection(hosts) as connection:  # pika tries them in turn
            channel = connection.channel()
            channel.queue_declare(queue, durable=True)
            channel.confirm_delivery()
            while True:
                number += 1
                channel.basic_publish("", queue, b"%d" % number, pika.BasicProperties(delivery_mode=2), mandatory=True)
                print("confirmed", number, flush=True)
                method, _, body = channel.basic_get(queue)
                if method is not None:
                    channel.basic_ack(method.delivery_tag)
                    print("got", int(body), flush=True)
                time.sleep(0.05)
    except pika.exceptions.AMQPError:
        time.sleep(0.1)
