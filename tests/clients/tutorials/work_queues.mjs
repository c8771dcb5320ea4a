// A worker holds one task and dies; the other does the rest and then that one.
import amqp from 'amqplib'
import { connected, url } from './common.mjs'

await connected(async (connection) => {
  const channel = await connection.createConfirmChannel()
  await channel.deleteQueue('task_queue')
  await channel.assertQueue('task_queue', { durable: true })
  for (let number = 0; number < 6; number++) {
    channel.sendToQueue('task_queue', Buffer.from(`task ${number}`), { persistent: true })
  }
  await channel.waitForConfirms()

  const other = await amqp.connect(url)
  const doomed = await other.createChannel()
  await doomed.prefetch(1)
  const held = await new Promise((resolve) => {
    doomed.consume('task_queue', (message) => resolve(message.content.toString()))
  })

  const steady = await connection.createChannel()
  await steady.prefetch(1)
  const done = []
  await new Promise((resolve, reject) => {
    steady.consume('task_queue', (message) => {
      if (message === null) return // cancelled: the queue is gone
      done.push([message.content.toString(), message.fields.redelivered])
      steady.ack(message)
      if (done.length === 5) other.close().catch(reject) // without having acknowledged
      if (done.length === 6) resolve()
    })
  })
  await channel.deleteQueue('task_queue')
  return { held, done }
})
