"""Tutorial 2: tasks that survive a restart of the broker and the death of a worker."""

import asyncio
import os

import aio_pika

url = os.environ.get("WARREN_URL", "amqp://guest:guest@127.0.0.1:5672/")


async def main() -> None:
    async with await aio_pika.connect(url) as connection:
        office = await connection.channel()  # with confirms: publish returns when the broker has the message on disk
        await office.declare_queue("tasks", durable=True)
        for number in (1, 2, 3):
            task = aio_pika.Message(f"task {number}".encode(), delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
            await office.default_exchange.publish(task, routing_key="tasks")
        print("3 tasks are on disk")

        first = await connection.channel()
        await first.set_qos(prefetch_count=1)  # one task at a time
        taken = await (await first.get_queue("tasks")).get()
        print(f"the first worker takes {taken.body.decode()} and dies")
        await first.close()  # without an acknowledgement

        second = await connection.channel()
        await second.set_qos(prefetch_count=1)
        queue = await second.get_queue("tasks")
        async with queue.iterator() as messages:
            async for message in messages:
                again = " (redelivered)" if message.redelivered else ""
                print(f"the second worker does {message.body.decode()}{again}")
                await message.ack()
                if message.body == b"task 3":
                    break


asyncio.run(main())
