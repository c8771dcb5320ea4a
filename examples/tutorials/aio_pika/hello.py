"""Tutorial 1: one message through one queue."""

import asyncio
import os

import aio_pika

url = os.environ.get("WARREN_URL", "amqp://guest:guest@127.0.0.1:5672/")


async def main() -> None:
    async with await aio_pika.connect(url) as connection:
        channel = await connection.channel()
        queue = await channel.declare_queue("hello")
        await channel.default_exchange.publish(aio_pika.Message(b"good morning"), routing_key="hello")
        print("sent good morning")

        async with queue.iterator(no_ack=True) as messages:
            async for message in messages:
                print("received", message.body.decode())
                break


asyncio.run(main())
