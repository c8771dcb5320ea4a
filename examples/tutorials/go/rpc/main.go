// Tutorial 6: a question, and its answer.
package main

import (
	"fmt"
	"log"
	"os"
	"strconv"

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

func serve(channel *amqp.Channel) {
	must(channel.QueueDeclare("square", false, false, false, false, nil))
	questions := must(channel.Consume("square", "", false, false, false, false, nil))
	go func() {
		for question := range questions {
			number := must(strconv.Atoi(string(question.Body)))
			check(channel.Publish("", question.ReplyTo, false, false, amqp.Publishing{
				Body:          []byte(strconv.Itoa(number * number)),
				CorrelationId: question.CorrelationId,
			}))
			check(question.Ack(false))
		}
	}()
}

func main() {
	url := os.Getenv("WARREN_URL")
	if url == "" {
		url = "amqp://guest:guest@127.0.0.1:5672/"
	}
	connection := must(amqp.Dial(url))
	defer connection.Close()
	serve(must(connection.Channel()))

	client := must(connection.Channel())
	const replyTo = "amq.rabbitmq.reply-to" // not a queue: the broker hands the answer to this channel
	answers := must(client.Consume(replyTo, "", true, false, false, false, nil))
	for _, number := range []string{"7", "12"} {
		question := amqp.Publishing{Body: []byte(number), ReplyTo: replyTo, CorrelationId: number}
		check(client.Publish("", "square", false, false, question))
		answer := <-answers
		fmt.Println(answer.CorrelationId, "squared is", string(answer.Body))
	}
}
