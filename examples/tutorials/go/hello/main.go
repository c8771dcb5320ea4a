// Tutorial 1: one message through one queue.
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
	must(channel.QueueDeclare("hello", false, false, false, false, nil))
	check(channel.Publish("", "hello", false, false, amqp.Publishing{Body: []byte("good morning")}))
	fmt.Println("sent good morning")

	messages := must(channel.Consume("hello", "", true, false, false, false, nil))
	fmt.Println("received", string((<-messages).Body))
}
