// Publisher confirms and the mandatory flag, with Node's amqplib: who learns what, and in which order.
//
//   node confirms_amqplib.js transient     acked when enqueued, long before the consumer has finished
//   node confirms_amqplib.js unroutable    acked, although nobody will ever see it
//   node confirms_amqplib.js mandatory     returned (312 NO_ROUTE), then acked
//   node confirms_amqplib.js persistent    acked once it is on the disk
//
// A second argument is the URL (default amqp://guest:guest@localhost/), a third the seconds of work.
'use strict'

const amqp = require('amqplib')
const util = require('node:util')

const EXCHANGE = 'company.e.whatever-exchange'
const QUEUE = 'company.q.whatever-queue'
const BOUND_KEY = 'whatever.a.a'
const FREE_KEY = 'whatever.b.b'

const [scene, url = 'amqp://guest:guest@localhost/', work = '5'] = process.argv.slice(2)
const seconds = Number(work)

function log (level, text, ...more) {
  const now = new Date()
  const two = (number) => String(number).padStart(2, '0')
  const stamp = `${two(now.getDate())}/${two(now.getMonth() + 1)}/${now.getFullYear()} ` +
    `${two(now.getHours())}:${two(now.getMinutes())}:${two(now.getSeconds())}.${String(now.getMilliseconds()).padStart(3, '0')}`
  process.stdout.write(`[${stamp}] ${`[${level}]`.padEnd(8)}${text}${more.map((item) => ' ' + util.inspect(item)).join('')}\n`)
}

async function consume () {
  const connection = await amqp.connect(url)
  const channel = await connection.createChannel()
  await channel.assertExchange(EXCHANGE, 'topic')
  await channel.assertQueue(QUEUE)
  await channel.purgeQueue(QUEUE)
  await channel.bindQueue(QUEUE, EXCHANGE, BOUND_KEY)
  const finished = new Promise((resolve) => {
    channel.consume(QUEUE, async (message) => {
      log('LOG', 'Consumer received message, working...')
      await new Promise((done) => setTimeout(done, seconds * 1000))
      log('LOG', 'Consumer processed message')
      channel.ack(message)
      resolve()
    })
  })
  await channel.checkQueue(QUEUE) // answered after the consume: the consumer is in place
  log('LOG', 'Consumer connected, awaiting for messages')
  return { connection, finished }
}

async function publish (routingKey, options) {
  const connection = await amqp.connect(url)
  const channel = await connection.createConfirmChannel()
  log('LOG', 'Publisher connected')
  channel.on('return', (message) => log('ERROR', 'Message returned back to publisher', message))
  log('LOG', 'Publisher about to publish message')
  await new Promise((resolve) => {
    channel.publish(EXCHANGE, routingKey, Buffer.from('test'), options, (error) => {
      log('LOG', `Message ${error ? 'nacked' : 'acked'} on publisher side`)
      resolve()
    })
  })
  await connection.close()
}

async function main () {
  const scenes = {
    transient: [BOUND_KEY, {}],
    persistent: [BOUND_KEY, { persistent: true }],
    unroutable: [FREE_KEY, {}],
    mandatory: [FREE_KEY, { mandatory: true }]
  }
  if (!(scene in scenes)) throw new Error(`scene is one of ${Object.keys(scenes).join(', ')}`)
  const { connection, finished } = await consume()
  await publish(...scenes[scene])
  if (scenes[scene][0] === BOUND_KEY) await finished
  await connection.close()
}

main().catch((error) => {
  console.error(error)
  process.exit(1)
})
