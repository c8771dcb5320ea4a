"""Tutorial 6: a question, and its answer."""

import asyncio
import os

import aio_pika
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage

url = os.environ.get("WARREN_URL", "amqp://guest:guest@127.0.0.1:5672/")


async def serve(channel: AbstractChannel) -> None:
    async def answer(question: AbstractIncomingMessage) -> None:
        async with question.process():
            squared = str(int(question.body) ** 2).encode()
            reply = aio_pika.Message(squared, correlation_id=question.correlation_id)
            await channel.default_exchange.publish(reply, routing_key=question.reply_to or "")

    await (await channel.declare_queue("square")).consume(answer)


async def main() -> None:
    async with await aio_pika.connect(url) as connection:
        await serve(await connection.channel())

        client = await connection.channel()
        answers: asyncio.Queue[AbstractIncomingMessage] = asyncio.Queue()
        replies = await client.get_queue("amq.rabbitmq.reply-to", ensure=False)  # not a queue: answers come here
        await replies.consume(answers.put, no_ack=True)
        for number in (7, 12):
            asked = aio_pika.Message(str(number).encode(), reply_to="amq.rabbitmq.reply-to", correlation_id=str(number))
            await client.default_exchange.publish(asked, routing_key="square")
            reply = await answers.get()
            print(reply.correlation_id, "squared is", reply.body.decode())


asyncio.run(main())
