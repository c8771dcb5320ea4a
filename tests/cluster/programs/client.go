// What test_clients.py expects of every client, with RabbitMQ's Go client. Arguments: QUEUE HOST:PORT HOST:PORT ...
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

var number = 0

func serve(queue, place string) error {
	connection, err := amqp.Dial("amqp://guest:guest@" + place + "/")
	if err != nil {
		return err
	}
	defer connection.Close()
	channel, err := connection.Channel()
	if err != nil {
		return err
	}
	lost := connection.NotifyClose(make(chan *amqp.Error, 1))
	if _, err = channel.QueueDeclare(queue, true, false, false, false, nil); err != nil {
		return err
	}
	if err = channel.Confirm(false); err != nil {
		return err
	}
	confirms := channel.NotifyPublish(make(chan amqp.Confirmation, 10))
	arrived, err := channel.Consume(queue, "", false, false, false, false, nil)
	if err != nil {
		return err
	}
	go func() {
		for message := range arrived {
			if message.Ack(false) == nil {
				fmt.Println("got", string(message.Body))
			}
		}
	}()
	for {
		number++
		message := amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte(strconv.Itoa(number))}
		if err = channel.Publish("", queue, false, false, message); err != nil {
			return err
		}
		select {
		case confirm, open := <-confirms:
			if !open || !confirm.Ack {
				return fmt.Errorf("not confirmed")
			}
			fmt.Println("confirmed", number)
		case <-lost:
			return fmt.Errorf("lost")
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func main() {
	places := os.Args[2:]
	for turn := 0; ; turn++ {
		if serve(os.Args[1], places[turn%len(places)]) != nil {
			time.Sleep(100 * time.Millisecond)
		}
	}
}
