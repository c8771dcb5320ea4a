"""Tutorial 3: every subscriber gets its own copy."""

import asyncio
import os

import aio_pika

url = os.environ.get("WARREN_URL", "amqp://guest:guest@127.0.0.1:5672/")


async def main() -> None:
    async with await aio_pika.connect(url) as connection:
        channel = await connection.channel()
        news = await channel.declare_exchange("news", aio_pika.ExchangeType.FANOUT)

        queues = {}
        for subscriber in ("radio", "paper"):
            queues[subscriber] = await channel.declare_queue(exclusive=True)  # the broker chooses a name
            await queues[subscriber].bind(news)

        await news.publish(aio_pika.Message(b"it rains"), routing_key="")

        for subscriber, queue in queues.items():
            async with queue.iterator(no_ack=True) as messages:
                async for message in messages:
                    print(subscriber, "got", message.body.decode())
                    break


asyncio.run(main())
