// What the tutorial programs share: the connection, and consuming until enough has come.
import amqp from 'amqplib'

export const url = process.argv[2]

export async function connected (tutorial) {
  const connection = await amqp.connect(url)
  const report = await tutorial(connection)
  await connection.close()
  console.log(JSON.stringify(report))
}

export async function collect (channel, queue, count) {
  const found = []
  let consumerTag
  await new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`only ${JSON.stringify(found)} came`)), 10000)
    channel.consume(queue, (message) => {
      found.push(message.content.toString())
      if (found.length === count) {
        clearTimeout(timer)
        resolve()
      }
    }, { noAck: true }).then((ok) => { consumerTag = ok.consumerTag }, reject)
  })
  await channel.cancel(consumerTag)
  return found
}
