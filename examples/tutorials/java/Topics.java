// Tutorial 5: patterns over keys of several words.
import com.rabbitmq.client.*;
import java.util.List;
import java.util.Map;
import java.util.concurrent.*;

public class Topics {
    public static void main(String[] arguments) throws Exception {
        String url = System.getenv().getOrDefault("WARREN_URL", "amqp://guest:guest@127.0.0.1:5672/%2F");
        Map<String, String> patterns = Map.of("Europe", "europe.#", "umbrellas", "*.*.rain");
        ConnectionFactory factory = new ConnectionFactory();
        factory.setUri(url);
        try (Connection connection = factory.newConnection()) {
            Channel channel = connection.createChannel();
            channel.exchangeDeclare("weather", "topic", false);

            CountDownLatch ended = new CountDownLatch(patterns.size());
            for (String name : patterns.keySet()) {
                String queue = channel.queueDeclare("", false, true, false, null).getQueue();
                channel.queueBind(queue, "weather", patterns.get(name));
                channel.basicConsume(queue, true, (tag, message) -> {
                    String key = message.getEnvelope().getRoutingKey();
                    System.out.println(name + " got " + key);
                    if (key.equals("europe.oslo.rain")) ended.countDown();
                }, tag -> {});
            }

            for (String key : List.of("europe.rome.sun", "asia.tokyo.rain", "asia.tokyo.sun", "europe.oslo.rain")) {
                channel.basicPublish("weather", key, null, new byte[0]);
            }
            ended.await();
        }
    }
}
