// Tutorial 5: patterns over keys of several words.
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
	check(channel.ExchangeDeclare("weather", "topic", false, false, false, false, nil))

	queues := map[string]<-chan amqp.Delivery{}
	for name, pattern := range map[string]string{"Europe": "europe.#", "umbrellas": "*.*.rain"} {
		queue := must(channel.QueueDeclare("", false, false, true, false, nil))
		check(channel.QueueBind(queue.Name, pattern, "weather", false, nil))
		queues[name] = must(channel.Consume(queue.Name, "", true, false, false, false, nil))
	}

	for _, key := range []string{"europe.rome.sun", "asia.tokyo.rain", "asia.tokyo.sun", "europe.oslo.rain"} {
		check(channel.Publish("weather", key, false, false, amqp.Publishing{}))
	}
	for name, messages := range queues {
		for message := range messages {
			fmt.Println(name, "got", message.RoutingKey)
			if message.RoutingKey == "europe.oslo.rain" {
				break
			}
		}
	}
}
