import { collect, connected } from './common.mjs'

await connected(async (connection) => {
  const channel = await connection.createChannel()
  await channel.assertExchange('direct_logs', 'direct', { durable: false })
  const wanted = { disk: ['error'], screen: ['info', 'warning', 'error'] }
  const queues = {}
  for (const [name, severities] of Object.entries(wanted)) {
    queues[name] = (await channel.assertQueue('', { exclusive: true })).queue
    for (const severity of severities) await channel.bindQueue(queues[name], 'direct_logs', severity)
  }
  for (const severity of ['info', 'error', 'warning', 'debug']) {
    channel.publish('direct_logs', severity, Buffer.from(severity))
  }
  const found = { disk: await collect(channel, queues.disk, 1), screen: await collect(channel, queues.screen, 3) }
  await channel.deleteExchange('direct_logs')
  return found
})
