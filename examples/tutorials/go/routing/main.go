// Tutorial 4: a queue gets the keys it is bound with, and no others.
package main

import (
	"fmt"
	"log"
	"os"

	amqp "github.com/rabbitmq/amqp091-go"
)

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	url := os.Getenv("WARREN_URL")
	if url == "" {
		url = "amqp://guest:guest@127.0.0.1:5672/"
	}
	connection := must(amqp.Dial(url))
	defer connection.Close()
	channel := must(connection.Channel())
	check(channel.ExchangeDeclare("alerts", "direct", false, false, false, false, nil))

	wanted := map[string][]string{"pager": {"error"}, "archive": {"info", "warning", "error"}}
	queues := map[string]<-chan amqp.Delivery{}
	for name, levels := range wanted {
		queue := must(channel.QueueDeclare("", false, false, true, false, nil))
		for _, level := range levels {
			check(channel.QueueBind(queue.Name, level, "alerts", false, nil))
		}
		queues[name] = must(channel.Consume(queue.Name, "", true, false, false, false, nil))
	}

	for _, level := range []string{"info", "debug", "error"} {
		check(channel.Publish("alerts", level, false, false, amqp.Publishing{Body: []byte("disk almost full")}))
	}
	for name, messages := range queues {
		for message := range messages {
			fmt.Printf("%s got %s: %s\n", name, message.RoutingKey, message.Body)
			if message.RoutingKey == "error" {
				break
			}
		}
	}
}
