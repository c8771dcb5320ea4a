// Tutorial 6: a question, and its answer.
import com.rabbitmq.client.*;
import java.util.List;
import java.util.concurrent.*;

public class Rpc {
    static void serve(Channel channel) throws Exception {
        channel.queueDeclare("square", false, false, false, null);
        channel.basicConsume("square", false, (tag, question) -> {
            int number = Integer.parseInt(new String(question.getBody()));
            AMQP.BasicProperties asked = question.getProperties();
            AMQP.BasicProperties properties =
                new AMQP.BasicProperties.Builder().correlationId(asked.getCorrelationId()).build();
            channel.basicPublish("", asked.getReplyTo(), properties, Integer.toString(number * number).getBytes());
            channel.basicAck(question.getEnvelope().getDeliveryTag(), false);
        }, tag -> {});
    }

    public static void main(String[] arguments) throws Exception {
        String url = System.getenv().getOrDefault("WARREN_URL", "amqp://guest:guest@127.0.0.1:5672/%2F");
        ConnectionFactory factory = new ConnectionFactory();
        factory.setUri(url);
        try (Connection connection = factory.newConnection()) {
            serve(connection.createChannel());

            Channel client = connection.createChannel();
            String replyTo = "amq.rabbitmq.reply-to"; // not a queue: the broker hands the answer to this channel
            BlockingQueue<Delivery> answers = new LinkedBlockingQueue<>();
            client.basicConsume(replyTo, true, (tag, answer) -> answers.add(answer), tag -> {});
            for (String number : List.of("7", "12")) {
                client.basicPublish("", "square",
                    new AMQP.BasicProperties.Builder().replyTo(replyTo).correlationId(number).build(),
                    number.getBytes());
                Delivery answer = answers.take();
                System.out.println(answer.getProperties().getCorrelationId() + " squared is " + new String(answer.getBody()));
            }
        }
    }
}
