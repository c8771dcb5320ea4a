// Tutorial 2: tasks that survive a restart of the broker and the death of a worker.
import com.rabbitmq.client.*;
import java.util.concurrent.*;

public class WorkQueues {
    public static void main(String[] arguments) throws Exception {
        String url = System.getenv().getOrDefault("WARREN_URL", "amqp://guest:guest@127.0.0.1:5672/%2F");
        ConnectionFactory factory = new ConnectionFactory();
        factory.setUri(url);
        try (Connection connection = factory.newConnection()) {
            Channel office = connection.createChannel();
            office.queueDeclare("tasks", true, false, false, null);
            office.confirmSelect();
            for (int number = 1; number <= 3; number++) {
                byte[] body = ("task " + number).getBytes();
                office.basicPublish("", "tasks", MessageProperties.PERSISTENT_TEXT_PLAIN, body);
            }
            office.waitForConfirmsOrDie(); // the broker has them on disk
            System.out.println("3 tasks are on disk");

            Channel first = connection.createChannel();
            first.basicQos(1); // one task at a time
            BlockingQueue<Delivery> taken = new LinkedBlockingQueue<>();
            first.basicConsume("tasks", false, (tag, message) -> taken.add(message), tag -> {});
            String task = new String(taken.take().getBody());
            System.out.println("the first worker takes " + task + " and dies");
            first.close(); // without an acknowledgement

            Channel second = connection.createChannel();
            second.basicQos(1);
            CountDownLatch ended = new CountDownLatch(3);
            second.basicConsume("tasks", false, (tag, message) -> {
                String again = message.getEnvelope().isRedeliver() ? " (redelivered)" : "";
                System.out.println("the second worker does " + new String(message.getBody()) + again);
                second.basicAck(message.getEnvelope().getDeliveryTag(), false);
                ended.countDown();
            }, tag -> {});
            ended.await();
        }
    }
}
