// What test_libraries.py expects of every library, with RabbitMQ's Java client. Arguments: HOST PORT delayed|plain
import com.rabbitmq.client.*;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

public class Client {
    static String taken(BlockingQueue<String> queue) throws Exception {
        return queue.poll(60, TimeUnit.SECONDS);
    }

    public static void main(String[] arguments) throws Exception {
        ConnectionFactory factory = new ConnectionFactory();
        factory.setHost(arguments[0]);
        factory.setPort(Integer.parseInt(arguments[1]));
        factory.setAutomaticRecoveryEnabled(false);
        Connection connection = factory.newConnection();
        Channel channel = connection.createChannel();
        String queue = channel.queueDeclare("", false, true, true, null).getQueue();

        channel.confirmSelect();
        channel.basicPublish("", queue, null, "one".getBytes());
        System.out.println("confirmed " + channel.waitForConfirms(60000));

        BlockingQueue<String> returned = new LinkedBlockingQueue<>();
        channel.addReturnListener((code, text, exchange, key, properties, body) ->
            returned.add(code + " " + text + " " + new String(body)));
        channel.basicPublish("", "no-such-queue", true, null, "lost".getBytes());
        channel.waitForConfirms(60000);
        System.out.println("returned " + taken(returned));

        GetResponse got = channel.basicGet(queue, false);
        channel.basicNack(got.getEnvelope().getDeliveryTag(), false, true);
        got = channel.basicGet(queue, false);
        System.out.println("redelivered " + got.getEnvelope().isRedeliver() + " " + new String(got.getBody()));
        channel.basicAck(got.getEnvelope().getDeliveryTag(), false);

        for (int number = 0; number < 10; number++) {
            channel.basicPublish("", queue, null, Integer.toString(number).getBytes());
        }
        channel.waitForConfirms(60000);
        Channel reader = connection.createChannel();
        reader.basicQos(2);
        BlockingQueue<String> arrived = new LinkedBlockingQueue<>();
        reader.basicConsume(queue, false, consumer(reader, arrived));
        String first = taken(arrived), second = taken(arrived);
        long waiting = channel.messageCount(queue);
        System.out.println("prefetched " + first + " " + second + " of 10, waiting " + waiting);
        reader.basicAck(2, true);
        System.out.println("then " + taken(arrived) + " " + taken(arrived));
        reader.close();

        if (arguments[2].equals("delayed")) {
            channel.exchangeDeclare("moving-java", "x-delayed-message", false, true, Map.of("x-delayed-type", "direct"));
            String own = channel.queueDeclare("", false, true, true, null).getQueue();
            channel.queueBind(own, "moving-java", "k");
            BlockingQueue<String> due = new LinkedBlockingQueue<>();
            channel.basicConsume(own, true, consumer(channel, due));
            long started = System.nanoTime();
            AMQP.BasicProperties properties = new AMQP.BasicProperties.Builder().headers(Map.of("x-delay", 300)).build();
            channel.basicPublish("moving-java", "k", properties, "late".getBytes());
            String text = taken(due);
            System.out.println("delayed " + text + " " + (System.nanoTime() - started >= 299_000_000L));
        }
        connection.close();
    }

    static Consumer consumer(Channel channel, BlockingQueue<String> arrived) {
        return new DefaultConsumer(channel) {
            public void handleDelivery(String tag, Envelope envelope, AMQP.BasicProperties properties, byte[] body) {
                arrived.add(new String(body));
            }
        };
    }
}
