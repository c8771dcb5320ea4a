// Tutorial 1: one message through one queue.
import com.rabbitmq.client.*;
import java.util.concurrent.*;

public class Hello {
    public static void main(String[] arguments) throws Exception {
        String url = System.getenv().getOrDefault("WARREN_URL", "amqp://guest:guest@127.0.0.1:5672/%2F");
        ConnectionFactory factory = new ConnectionFactory();
        factory.setUri(url);
        try (Connection connection = factory.newConnection()) {
            Channel channel = connection.createChannel();
            channel.queueDeclare("hello", false, false, false, null);
            channel.basicPublish("", "hello", null, "good morning".getBytes());
            System.out.println("sent good morning");

            BlockingQueue<String> received = new LinkedBlockingQueue<>();
            channel.basicConsume("hello", true,
                (tag, message) -> received.add(new String(message.getBody())), tag -> {});
            System.out.println("received " + received.take());
        }
    }
}
