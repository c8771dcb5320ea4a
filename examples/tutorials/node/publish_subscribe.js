// Tutorial 3: every subscriber gets its own copy.
const amqp = require("amqplib");

const url = process.env.WARREN_URL || "amqp://guest:guest@127.0.0.1:5672/";

async function main() {
  const connection = await amqp.connect(url);
  const channel = await connection.createChannel();
  await channel.assertExchange("news", "fanout", { durable: false });

  const heard = [];
  for (const subscriber of ["radio", "paper"]) {
    const { queue } = await channel.assertQueue("", { exclusive: true }); // the broker chooses a name
    await channel.bindQueue(queue, "news", "");
    heard.push(new Promise((done) =>
      channel.consume(queue, (message) => {
        console.log(subscriber, "got", message.content.toString());
        done();
      }, { noAck: true })));
  }

  channel.publish("news", "", Buffer.from("it rains"));
  await Promise.all(heard);
  await connection.close();
}

main();
