// Tutorial 2: tasks that survive a restart of the broker and the death of a worker.
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
	office := must(connection.Channel())
	must(office.QueueDeclare("tasks", true, false, false, false, nil))
	confirms := office.NotifyPublish(make(chan amqp.Confirmation, 3))
	check(office.Confirm(false))
	for number := 1; number <= 3; number++ {
		body := []byte(fmt.Sprintf("task %d", number))
		check(office.Publish("", "tasks", false, false, amqp.Publishing{Body: body, DeliveryMode: amqp.Persistent}))
	}
	for number := 1; number <= 3; number++ {
		if !(<-confirms).Ack { // the broker has it on disk, or says that it has not
			log.Fatal("a task was not taken")
		}
	}
	fmt.Println("3 tasks are on disk")

	first := must(connection.Channel())
	check(first.Qos(1, 0, false)) // one task at a time
	taken := <-must(first.Consume("tasks", "", false, false, false, false, nil))
	fmt.Printf("the first worker takes %s and dies\n", taken.Body)
	check(first.Close()) // without an acknowledgement

	second := must(connection.Channel())
	check(second.Qos(1, 0, false))
	for message := range must(second.Consume("tasks", "", false, false, false, false, nil)) {
		again := ""
		if message.Redelivered {
			again = " (redelivered)"
		}
		fmt.Printf("the second worker does %s%s\n", message.Body, again)
		check(message.Ack(false))
		if string(message.Body) == "task 3" {
			break
		}
	}
}
