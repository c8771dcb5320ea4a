// Tutorial 5: patterns over keys of several words.
const amqp = require("amqplib");

const url = process.env.WARREN_URL || "amqp://guest:guest@127.0.0.1:5672/";
const patterns = { Europe: "europe.#", umbrellas: "*.*.rain" };

async function main() {
  const connection = await amqp.connect(url);
  const channel = await connection.createChannel();
  await channel.assertExchange("weather", "topic", { durable: false });

  const ended = [];
  for (const [name, pattern] of Object.entries(patterns)) {
    const { queue } = await channel.assertQueue("", { exclusive: true });
    await channel.bindQueue(queue, "weather", pattern);
    ended.push(new Promise((done) =>
      channel.consume(queue, (message) => {
        console.log(name, "got", message.fields.routingKey);
        if (message.fields.routingKey === "europe.oslo.rain") done();
      }, { noAck: true })));
  }

  for (const key of ["europe.rome.sun", "asia.tokyo.rain", "asia.tokyo.sun", "europe.oslo.rain"]) {
    channel.publish("weather", key, Buffer.alloc(0));
  }
  await Promise.all(ended);
  await connection.close();
}

main();
