// What test_clients.py expects of every client, with Node's amqplib. Arguments: QUEUE HOST:PORT HOST:PORT ...
import { createRequire } from "node:module";

const amqp = createRequire(process.env.NODE_PATH + "/")("amqplib");
const [queue, ...places] = process.argv.slice(2);
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
let number = 0;

async function serve(place) {
  const connection = await amqp.connect(`amqp://guest:guest@${place}/`, { timeout: 5000 });
  const lost = new Promise((_, fail) => {
    connection.on("close", () => fail(new Error("closed")));
    connection.on("error", fail);
  });
  lost.catch(() => {});
  const channel = await connection.createConfirmChannel();
  channel.on("error", () => {});
  await channel.assertQueue(queue, { durable: true });
  await channel.consume(queue, (message) => {
    if (message === null) return;
    channel.ack(message);
    console.log("got", Number(message.content));
  });
  for (;;) {
    number += 1;
    const confirmed = new Promise((done, fail) =>
      channel.sendToQueue(queue, Buffer.from(String(number)), { persistent: true }, (error) =>
        error ? fail(error) : done(),
      ),
    );
    await Promise.race([confirmed, lost]);
    console.log("confirmed", number);
    await pause(50);
  }
}

for (let turn = 0; ; turn += 1) {
  await serve(places[turn % places.length]).catch(() => pause(100));
}
