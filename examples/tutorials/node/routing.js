// Tutorial 4: a queue gets the keys it is bound with, and no others.
const amqp = require("amqplib");

const url = process.env.WARREN_URL || "amqp://guest:guest@127.0.0.1:5672/";
const wanted = { pager: ["error"], archive: ["info", "warning", "error"] };

async function main() {
  const connection = await amqp.connect(url);
  const channel = await connection.createChannel();
  await channel.assertExchange("alerts", "direct", { durable: false });

  const ended = [];
  for (const [name, levels] of Object.entries(wanted)) {
    const { queue } = await channel.assertQueue("", { exclusive: true });
    for (const level of levels) await channel.bindQueue(queue, "alerts", level);
    ended.push(new Promise((done) =>
      channel.consume(queue, (message) => {
        console.log(`${name} got ${message.fields.routingKey}: ${message.content}`);
        if (message.fields.routingKey === "error") done();
      }, { noAck: true })));
  }

  for (const level of ["info", "debug", "error"]) {
    channel.publish("alerts", level, Buffer.from("disk almost full"));
  }
  await Promise.all(ended);
  await connection.close();
}

main();
