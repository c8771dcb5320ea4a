import { collect, connected } from './common.mjs'

await connected(async (connection) => {
  const channel = await connection.createChannel()
  await channel.assertExchange('logs', 'fanout', { durable: false })
  const queues = []
  for (let number = 0; number < 2; number++) {
    const { queue } = await channel.assertQueue('', { exclusive: true })
    await channel.bindQueue(queue, 'logs', '')
    queues.push(queue)
  }
  channel.publish('logs', '', Buffer.from('info: Hello World!'))
  const found = []
  for (const queue of queues) found.push(await collect(channel, queue, 1))
  await channel.deleteExchange('logs')
  return found
})
