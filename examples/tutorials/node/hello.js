// Tutorial 1: one message through one queue.
const amqp = require("amqplib");

const url = process.env.WARREN_URL || "amqp://guest:guest@127.0.0.1:5672/";

async function main() {
  const connection = await amqp.connect(url);
  const channel = await connection.createChannel();
  await channel.assertQueue("hello", { durable: false });
  channel.sendToQueue("hello", Buffer.from("good morning"));
  console.log("sent good morning");

  await new Promise((done) =>
    channel.consume("hello", (message) => {
      console.log("received", message.content.toString());
      done();
    }, { noAck: true }));
  await connection.close();
}

main();
