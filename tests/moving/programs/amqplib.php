<?php
// What test_libraries.py expects of every library, with php-amqplib. Arguments: HOST PORT delayed|plain
require_once 'PhpAmqpLib/autoload.php';

use PhpAmqpLib\Connection\AMQPStreamConnection;
use PhpAmqpLib\Message\AMQPMessage;
use PhpAmqpLib\Wire\AMQPTable;

$connection = new AMQPStreamConnection($argv[1], (int) $argv[2], 'guest', 'guest');
$channel = $connection->channel();
[$queue] = $channel->queue_declare('', false, false, true, true);

$confirmed = 'false';
$channel->confirm_select();
$channel->set_ack_handler(function () use (&$confirmed) { $confirmed = 'true'; });
$channel->basic_publish(new AMQPMessage('one'), '', $queue);
$channel->wait_for_pending_acks(60);
echo "confirmed $confirmed\n";

$returned = '';
$channel->set_return_listener(function ($code, $text, $exchange, $key, $message) use (&$returned) {
    $returned = "$code $text {$message->body}";
});
$channel->basic_publish(new AMQPMessage('lost'), '', 'no-such-queue', true);
$channel->wait_for_pending_acks_returns(60);
echo "returned $returned\n";

$message = $channel->basic_get($queue);
$message->nack(true);
$message = $channel->basic_get($queue);
echo 'redelivered ' . ($message->isRedelivered() ? 'true' : 'false') . " {$message->body}\n";
$message->ack();

for ($number = 0; $number < 10; $number++) {
    $channel->basic_publish(new AMQPMessage((string) $number), '', $queue);
}
$channel->wait_for_pending_acks(60);
$reader = $connection->channel();
$reader->basic_qos(0, 2, false);
$arrived = [];
$reader->basic_consume($queue, '', false, false, false, false, function ($message) use (&$arrived) {
    $arrived[] = $message;
});
while (count($arrived) < 2) {
    $reader->wait(null, false, 60);
}
[, $waiting] = $channel->queue_declare($queue, true);
echo "prefetched {$arrived[0]->body} {$arrived[1]->body} of 10, waiting $waiting\n";
$arrived[1]->ack(true);
while (count($arrived) < 4) {
    $reader->wait(null, false, 60);
}
echo "then {$arrived[2]->body} {$arrived[3]->body}\n";
$reader->close();

if ($argv[3] === 'delayed') {
    $channel->exchange_declare('moving-php', 'x-delayed-message', false, false, true, false, false,
        new AMQPTable(['x-delayed-type' => 'direct']));
    [$own] = $channel->queue_declare('', false, false, true, true);
    $channel->queue_bind($own, 'moving-php', 'k');
    $late = null;
    $channel->basic_consume($own, '', false, true, false, false, function ($message) use (&$late) {
        $late = $message->body;
    });
    $started = hrtime(true);
    $headers = new AMQPTable(['x-delay' => 300]);
    $channel->basic_publish(new AMQPMessage('late', ['application_headers' => $headers]), 'moving-php', 'k');
    while ($late === null) {
        $channel->wait(null, false, 60);
    }
    echo "delayed $late " . (hrtime(true) - $started >= 299_000_000 ? 'true' : 'false') . "\n";
}
$connection->close();
