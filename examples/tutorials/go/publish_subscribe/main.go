// Tutorial 3: every subscriber gets its own copy.
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
	check(channel.ExchangeDeclare("news", "fanout", false, false, false, false, nil))

	subscribers := []string{"radio", "paper"}
	heard := map[string]<-chan amqp.Delivery{}
	for _, subscriber := range subscribers {
		queue := must(channel.QueueDeclare("", false, false, true, false, nil)) // the broker chooses a name
		check(channel.QueueBind(queue.Name, "", "news", false, nil))
		heard[subscriber] = must(channel.Consume(queue.Name, "", true, false, false, false, nil))
	}

	check(channel.Publish("news", "", false, false, amqp.Publishing{Body: []byte("it rains")}))
	for _, subscriber := range subscribers {
		fmt.Println(subscriber, "got", string((<-heard[subscriber]).Body))
	}
}
