"""What test_clients.py expects of every client, with aio-pika. Arguments: QUEUE HOST:PORT HOST:PORT ..."""

import asyncio
import itertools
import sys

import aio_pika
import aiormq

queue, *places = sys.argv[1:]
LOST = (aio_pika.exceptions.AMQPException, aiormq.exceptions.AMQPError, OSError, asyncio.TimeoutError, RuntimeError)


async def main() -> None:
    number = 0
    for place in itertools.cycle(places):
        try:
            connection = await aio_pika.connect(f"amqp://guest:guest@{place}/", timeout=10)
            async with connection:
                channel = await connection.channel(publisher_confirms=True)
                declared = await channel.declare_queue(queue, durable=True)

                async def took(message: aio_pika.abc.AbstractIncomingMessage) -> None:
                    await message.ack()
                    print("got", int(message.body), flush=True)

                await declared.consume(took)
                while True:
                    number += 1
                    message = aio_pika.Message(b"%d" % number, delivery_mode=2)
                    await channel.default_exchange.publish(message, queue, timeout=10)
                    print("confirmed", number, flush=True)
                    await asyncio.sleep(0.05)
        except LOST:
            await asyncio.sleep(0.1)


asyncio.run(main())
