import { collect, connected } from './common.mjs'

await connected(async (connection) => {
  const channel = await connection.createChannel()
  await channel.assertExchange('topic_logs', 'topic', { durable: false })
  const wanted = { '#': 5, 'kern.*': 2, '*.critical': 2 }
  const queues = {}
  for (const key of Object.keys(wanted)) {
    queues[key] = (await channel.assertQueue('', { exclusive: true })).queue
    await channel.bindQueue(queues[key], 'topic_logs', key)
  }
  for (const key of ['kern.critical', 'kern.info', 'auth.critical', 'auth.info', 'kern']) {
    channel.publish('topic_logs', key, Buffer.from(key))
  }
  const found = {}
  for (const [key, count] of Object.entries(wanted)) found[key] = await collect(channel, queues[key], count)
  await channel.deleteExchange('topic_logs')
  return found
})
