// Tutorial 4: a queue gets the keys it is bound with, and no others.
import com.rabbitmq.client.*;
import java.util.List;
import java.util.Map;
import java.util.concurrent.*;

public class Routing {
    public static void main(String[] arguments) throws Exception {
        String url = System.getenv().getOrDefault("WARREN_URL", "amqp://guest:guest@127.0.0.1:5672/%2F");
        Map<String, List<String>> wanted =
            Map.of("pager", List.of("error"), "archive", List.of("info", "warning", "error"));
        ConnectionFactory factory = new ConnectionFactory();
        factory.setUri(url);
        try (Connection connection = factory.newConnection()) {
            Channel channel = connection.createChannel();
            channel.exchangeDeclare("alerts", "direct", false);

            CountDownLatch ended = new CountDownLatch(wanted.size());
            for (String name : wanted.keySet()) {
                String queue = channel.queueDeclare("", false, true, false, null).getQueue();
                for (String level : wanted.get(name)) channel.queueBind(queue, "alerts", level);
                channel.basicConsume(queue, true, (tag, message) -> {
                    String level = message.getEnvelope().getRoutingKey();
                    System.out.println(name + " got " + level + ": " + new String(message.getBody()));
                    if (level.equals("error")) ended.countDown();
                }, tag -> {});
            }

            for (String level : List.of("info", "debug", "error")) {
                channel.basicPublish("alerts", level, null, "disk almost full".getBytes());
            }
            ended.await();
        }
    }
}
