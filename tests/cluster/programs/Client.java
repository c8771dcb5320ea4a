// What test_clients.py expects of every client, with RabbitMQ's Java client, which recovers its connection and its
// consumer by itself and tries all addresses. Arguments: QUEUE HOST:PORT HOST:PORT ...
import com.rabbitmq.client.Address;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.MessageProperties;
import com.rabbitmq.client.ShutdownSignalException;
import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;

public class Client {
    public static void main(String[] arguments) throws Exception {
        String queue = arguments[0];
        List<Address> places = Arrays.stream(arguments).skip(1).map(Address::parseAddress).collect(Collectors.toList());
        ConnectionFactory factory = new ConnectionFactory();
        factory.setAutomaticRecoveryEnabled(true);
        factory.setTopologyRecoveryEnabled(true);
        factory.setNetworkRecoveryInterval(200);
        Connection connection = factory.newConnection(places);
        Channel channel = connection.createChannel();
        channel.queueDeclare(queue, true, false, false, null);
        channel.confirmSelect();
        channel.basicConsume(queue, false, (tag, message) -> {
            channel.basicAck(message.getEnvelope().getDeliveryTag(), false);
            System.out.println("got " + new String(message.getBody()));
        }, tag -> { });
        for (int number = 1; ; number++) {
            try {
                channel.basicPublish("", queue, MessageProperties.PERSISTENT_BASIC, String.valueOf(number).getBytes());
                if (channel.waitForConfirms(10_000)) {
                    System.out.println("confirmed " + number);
                }
            } catch (IOException | ShutdownSignalException | TimeoutException lost) {
                Thread.sleep(100);
            }
            Thread.sleep(50);
        }
    }
}
