"""Tutorial 4: a queue gets the keys it is bound with, and no others."""

import asyncio
import os

import aio_pika

url = os.environ.get("WARREN_URL", "amqp://guest:guest@127.0.0.1:5672/")
wanted = {"pager": ["error"], "archive": ["info", "warning", "error"]}


async def main() -> None:
    async with await aio_pika.connect(url) as connection:
        channel = await connection.channel()
        alerts = await channel.declare_exchange("alerts", aio_pika.ExchangeType.DIRECT)

        queues = {}
        for name, levels in wanted.items():
            queues[name] = await channel.declare_queue(exclusive=True)
            for level in levels:
                await queues[name].bind(alerts, routing_key=level)

        for level in ("info", "debug", "error"):
            await alerts.publish(aio_pika.Message(b"disk almost full"), routing_key=level, mandatory=False)

        for name, queue in queues.items():
            async with queue.iterator(no_ack=True) as messages:
                async for message in messages:
                    print(f"{name} got {message.routing_key}: {message.body.decode()}")
                    if message.routing_key == "error":
                        break


asyncio.run(main())
