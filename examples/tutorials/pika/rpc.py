"""Tutorial 6: a question, and its answer."""

import os

import pika

url = os.environ.get("WARREN_URL", "amqp://guest:guest@127.0.0.1:5672/")


def answer(channel, method, properties, body):
    reply = pika.BasicProperties(correlation_id=properties.correlation_id)
    channel.basic_publish("", properties.reply_to, str(int(body) ** 2), reply)
    channel.basic_ack(method.delivery_tag)


with pika.BlockingConnection(pika.URLParameters(url)) as connection:
    server = connection.channel()
    server.queue_declare("square")
    server.basic_consume("square", answer)

    client = connection.channel()
    answers = {}
    client.basic_consume(
        "amq.rabbitmq.reply-to",  # not a queue: the broker hands the answer to this channel
        lambda _channel, _method, properties, body: answers.update({properties.correlation_id: body.decode()}),
        auto_ack=True,
    )
    for number in (7, 12):
        asked = pika.BasicProperties(reply_to="amq.rabbitmq.reply-to", correlation_id=str(number))
        client.basic_publish("", "square", str(number), asked)
        while str(number) not in answers:
            connection.process_data_events(time_limit=1)
        print(number, "squared is", answers[str(number)])
