"""The six RabbitMQ tutorials with aio-pika."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable

import aio_pika
import pytest
from aio_pika import DeliveryMode, ExchangeType, Message
from aio_pika.abc import AbstractIncomingMessage, AbstractQueue, AbstractRobustConnection

from tests.support.brokers import RunningBroker

Tutorial = Callable[[AbstractRobustConnection], Awaitable[None]]


async def collect(queue: AbstractQueue, count: int) -> list[str]:
    found: list[str] = []
    async with asyncio.timeout(10):
        async with queue.iterator() as messages:
            async for message in messages:
                async with message.process():
                    found.append(message.body.decode())
                if len(found) == count:
                    break
    return found


async def hello_world(connection: AbstractRobustConnection) -> None:
    channel = await connection.channel()
    await channel.queue_delete("hello")
    queue = await channel.declare_queue("hello")
    await channel.default_exchange.publish(Message(b"Hello World!"), routing_key="hello")
    assert await collect(queue, 1) == ["Hello World!"]
    await queue.delete(if_unused=False, if_empty=False)


async def work_queues(connection: AbstractRobustConnection) -> None:
    channel = await connection.channel()
    await channel.queue_delete("task_queue")
    queue = await channel.declare_queue("task_queue", durable=True)
    for number in range(6):
        await channel.default_exchange.publish(
            Message(f"task {number}".encode(), delivery_mode=DeliveryMode.PERSISTENT), routing_key="task_queue"
        )
    done: list[tuple[str, bool]] = []
    all_done = asyncio.Event()
    doomed = await connection.channel()
    await doomed.set_qos(prefetch_count=1)
    held: list[AbstractIncomingMessage] = []
    got_one = asyncio.Event()

    async def hold(message: AbstractIncomingMessage) -> None:
        held.append(message)
        got_one.set()

    await (await doomed.get_queue("task_queue")).consume(hold)
    await asyncio.wait_for(got_one.wait(), 60)
    steady = await connection.channel()
    await steady.set_qos(prefetch_count=1)

    async def on_task(message: AbstractIncomingMessage) -> None:
        async with message.process():
            done.append((message.body.decode(), bool(message.redelivered)))
        if len(done) == 5:
            await doomed.close()
        if len(done) == 6:
            all_done.set()

    await (await steady.get_queue("task_queue")).consume(on_task)
    await asyncio.wait_for(all_done.wait(), 60)
    assert [message.body for message in held] == [b"task 0"]
    assert done == [(f"task {number}", False) for number in range(1, 6)] + [("task 0", True)]
    await queue.delete(if_unused=False, if_empty=False)


async def publish_subscribe(connection: AbstractRobustConnection) -> None:
    channel = await connection.channel()
    logs = await channel.declare_exchange("logs", ExchangeType.FANOUT)
    queues = [await channel.declare_queue(exclusive=True) for _ in range(2)]
    for queue in queues:
        await queue.bind(logs)
    await logs.publish(Message(b"info: Hello World!"), routing_key="")
    for queue in queues:
        assert await collect(queue, 1) == ["info: Hello World!"]
    await logs.delete()


async def routing(connection: AbstractRobustConnection) -> None:
    channel = await connection.channel()
    logs = await channel.declare_exchange("direct_logs", ExchangeType.DIRECT)
    disk, screen = await channel.declare_queue(exclusive=True), await channel.declare_queue(exclusive=True)
    await disk.bind(logs, routing_key="error")
    for severity in ("info", "warning", "error"):
        await screen.bind(logs, routing_key=severity)
    for severity in ("info", "error", "warning", "debug"):
        await logs.publish(Message(severity.encode()), routing_key=severity, mandatory=False)
    assert await collect(disk, 1) == ["error"]
    assert await collect(screen, 3) == ["info", "error", "warning"]
    await logs.delete()


async def topics(connection: AbstractRobustConnection) -> None:
    channel = await connection.channel()
    logs = await channel.declare_exchange("topic_logs", ExchangeType.TOPIC)
    keys = ["kern.critical", "kern.info", "auth.critical", "auth.info", "kern", "kern.disk.critical"]
    wanted = {"#": keys, "kern.*": keys[:2], "*.critical": [keys[0], keys[2]], "kern.#": [*keys[:2], *keys[4:]]}
    queues = {}
    for key in wanted:
        queues[key] = await channel.declare_queue(exclusive=True)
        await queues[key].bind(logs, routing_key=key)
    for key in keys:
        await logs.publish(Message(key.encode()), routing_key=key)
    for key, expected in wanted.items():
        assert await collect(queues[key], len(expected)) == expected
    await logs.delete()


async def remote_procedure_call(connection: AbstractRobustConnection) -> None:
    serving = await connection.channel()
    await serving.queue_delete("rpc_queue")
    rpc_queue = await serving.declare_queue("rpc_queue")

    async def on_request(message: AbstractIncomingMessage) -> None:
        async with message.process(requeue=False):
            assert message.reply_to is not None
            answer = str(int(message.body) ** 2).encode()
            await serving.default_exchange.publish(
                Message(answer, correlation_id=message.correlation_id), routing_key=message.reply_to
            )

    await rpc_queue.consume(on_request)
    asking = await connection.channel()
    callback_queue = await asking.declare_queue(exclusive=True)
    answers: dict[str | None, asyncio.Future[bytes]] = {}

    async def on_response(message: AbstractIncomingMessage) -> None:
        answers[message.correlation_id].set_result(message.body)

    await callback_queue.consume(on_response, no_ack=True)
    for number in (5, 12, 30):
        correlation_id = str(uuid.uuid4())
        answers[correlation_id] = asyncio.get_running_loop().create_future()
        await asking.default_exchange.publish(
            Message(str(number).encode(), correlation_id=correlation_id, reply_to=callback_queue.name),
            routing_key="rpc_queue",
        )
        assert await asyncio.wait_for(answers[correlation_id], 60) == str(number**2).encode()
    await rpc_queue.delete(if_unused=False, if_empty=False)


@pytest.mark.parametrize(
    "tutorial",
    [hello_world, work_queues, publish_subscribe, routing, topics, remote_procedure_call],
    ids=lambda tutorial: tutorial.__name__,
)
def test_the_tutorial_works(broker: RunningBroker, tutorial: Tutorial) -> None:
    async def run() -> None:
        connection = await aio_pika.connect_robust(broker.url)
        async with connection:
            await tutorial(connection)

    asyncio.run(run())
