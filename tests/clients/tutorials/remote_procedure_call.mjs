import { randomUUID } from 'node:crypto'
import { connected } from './common.mjs'

const fibonacci = (number) => number < 2 ? number : fibonacci(number - 1) + fibonacci(number - 2)

await connected(async (connection) => {
  const serving = await connection.createChannel()
  await serving.deleteQueue('rpc_queue')
  await serving.assertQueue('rpc_queue', { durable: false })
  await serving.prefetch(1)
  await serving.consume('rpc_queue', (message) => {
    if (message === null) return // cancelled: the queue is gone
    const answer = fibonacci(Number(message.content.toString()))
    serving.sendToQueue(message.properties.replyTo, Buffer.from(String(answer)), {
      correlationId: message.properties.correlationId
    })
    serving.ack(message)
  })

  const asking = await connection.createChannel()
  const { queue } = await asking.assertQueue('', { exclusive: true })
  const waiting = new Map()
  await asking.consume(queue, (message) => {
    waiting.get(message.properties.correlationId)(Number(message.content.toString()))
  }, { noAck: true })
  const answers = []
  for (const number of [5, 10, 15]) {
    const correlationId = randomUUID()
    answers.push(await new Promise((resolve) => {
      waiting.set(correlationId, resolve)
      asking.sendToQueue('rpc_queue', Buffer.from(String(number)), { correlationId, replyTo: queue })
    }))
  }
  await serving.deleteQueue('rpc_queue')
  return answers
})
