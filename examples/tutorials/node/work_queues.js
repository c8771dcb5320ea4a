// Tutorial 2: tasks that survive a restart of the broker and the death of a worker.
const amqp = require("amqplib");

const url = process.env.WARREN_URL || "amqp://guest:guest@127.0.0.1:5672/";

async function main() {
  const connection = await amqp.connect(url);
  const office = await connection.createConfirmChannel();
  await office.assertQueue("tasks", { durable: true });
  for (const number of [1, 2, 3]) {
    office.sendToQueue("tasks", Buffer.from(`task ${number}`), { persistent: true });
  }
  await office.waitForConfirms(); // the broker has them on disk
  console.log("3 tasks are on disk");

  const first = await connection.createChannel();
  await first.prefetch(1); // one task at a time
  const taken = await new Promise((done) => first.consume("tasks", done));
  console.log(`the first worker takes ${taken.content} and dies`);
  await first.close(); // without an acknowledgement

  const second = await connection.createChannel();
  await second.prefetch(1);
  await new Promise((done) =>
    second.consume("tasks", (message) => {
      const again = message.fields.redelivered ? " (redelivered)" : "";
      console.log(`the second worker does ${message.content}${again}`);
      second.ack(message);
      if (message.content.toString() === "task 3") done();
    }));
  await second.close(); // what was acknowledged is sent before
  await connection.close();
}

main();
