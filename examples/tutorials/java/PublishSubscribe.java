// Tutorial 3: every subscriber gets its own copy.
import com.rabbitmq.client.*;
import java.util.List;
import java.util.concurrent.*;

public class PublishSubscribe {
    public static void main(String[] arguments) throws Exception {
        String url = System.getenv().getOrDefault("WARREN_URL", "amqp://guest:guest@127.0.0.1:5672/%2F");
        ConnectionFactory factory = new ConnectionFactory();
        factory.setUri(url);
        try (Connection connection = factory.newConnection()) {
            Channel channel = connection.createChannel();
            channel.exchangeDeclare("news", "fanout", false);

            CountDownLatch heard = new CountDownLatch(2);
            for (String subscriber : List.of("radio", "paper")) {
                String queue = channel.queueDeclare("", false, true, false, null).getQueue(); // the broker names it
                channel.queueBind(queue, "news", "");
                channel.basicConsume(queue, true, (tag, message) -> {
                    System.out.println(subscriber + " got " + new String(message.getBody()));
                    heard.countDown();
                }, tag -> {});
            }

            channel.basicPublish("news", "", null, "it rains".getBytes());
            heard.await();
        }
    }
}
