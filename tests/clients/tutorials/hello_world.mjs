import { collect, connected } from './common.mjs'

await connected(async (connection) => {
  const channel = await connection.createChannel()
  await channel.deleteQueue('hello')
  await channel.assertQueue('hello', { durable: false })
  channel.sendToQueue('hello', Buffer.from('Hello World!'))
  const found = await collect(channel, 'hello', 1)
  await channel.deleteQueue('hello')
  return found
})
