"""Tutorial 5: patterns over keys of several words."""

import asyncio
import os

import aio_pika

url = os.environ.get("WARREN_URL", "amqp://guest:guest@127.0.0.1:5672/")
patterns = {"Europe": "europe.#", "umbrellas": "*.*.rain"}


async def main() -> None:
    async with await aio_pika.connect(url) as connection:
        channel = await connection.channel()
        weather = await channel.declare_exchange("weather", aio_pika.ExchangeType.TOPIC)

        queues = {}
        for name, pattern in patterns.items():
            queues[name] = await channel.declare_queue(exclusive=True)
            await queues[name].bind(weather, routing_key=pattern)

        for key in ("europe.rome.sun", "asia.tokyo.rain", "asia.tokyo.sun", "europe.oslo.rain"):
            await weather.publish(aio_pika.Message(b""), routing_key=key, mandatory=False)

        for name, queue in queues.items():
            async with queue.iterator(no_ack=True) as messages:
                async for message in messages:
                    print(name, "got", message.routing_key)
                    if message.routing_key == "europe.oslo.rain":
                        break


asyncio.run(main())
