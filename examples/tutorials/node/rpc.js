// Tutorial 6: a question, and its answer.
const amqp = require("amqplib");

const url = process.env.WARREN_URL || "amqp://guest:guest@127.0.0.1:5672/";

async function serve(channel) {
  await channel.assertQueue("square", { durable: false });
  await channel.consume("square", (question) => {
    const { replyTo, correlationId } = question.properties;
    channel.sendToQueue(replyTo, Buffer.from(String(Number(question.content) ** 2)), { correlationId });
    channel.ack(question);
  });
}

async function main() {
  const connection = await amqp.connect(url);
  await serve(await connection.createChannel());

  const client = await connection.createChannel();
  const waiting = {};
  const replyTo = "amq.rabbitmq.reply-to"; // not a queue: the broker hands the answer to this channel
  await client.consume(replyTo, (reply) => waiting[reply.properties.correlationId](reply.content.toString()),
    { noAck: true });
  for (const number of [7, 12]) {
    const correlationId = String(number);
    const answer = await new Promise((done) => {
      waiting[correlationId] = done;
      client.sendToQueue("square", Buffer.from(correlationId), { replyTo, correlationId });
    });
    console.log(number, "squared is", answer);
  }
  await connection.close();
}

main();
