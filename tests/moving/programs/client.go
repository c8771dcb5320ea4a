// What test_libraries.py expects of every library, with RabbitMQ's Go client. Arguments: HOST PORT delayed|plain
package main

import (
	"fmt"
	"os"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func publish(channel *amqp.Channel, exchange, key string, mandatory bool, message amqp.Publishing) {
	check(channel.Publish(exchange, key, mandatory, false, message))
}

func main() {
	connection := must(amqp.Dial("amqp://guest:guest@" + os.Args[1] + ":" + os.Args[2] + "/"))
	channel := must(connection.Channel())
	queue := must(channel.QueueDeclare("", false, true, true, false, nil)).Name

	confirms := channel.NotifyPublish(make(chan amqp.Confirmation, 100))
	returns := channel.NotifyReturn(make(chan amqp.Return, 100))
	check(channel.Confirm(false))
	publish(channel, "", queue, false, amqp.Publishing{Body: []byte("one")})
	fmt.Println("confirmed", (<-confirms).Ack)

	publish(channel, "", "no-such-queue", true, amqp.Publishing{Body: []byte("lost")})
	returned := <-returns
	<-confirms
	fmt.Println("returned", returned.ReplyCode, returned.ReplyText, string(returned.Body))

	got, _, err := channel.Get(queue, false)
	check(err)
	check(got.Nack(false, true))
	got, _, err = channel.Get(queue, false)
	check(err)
	fmt.Println("redelivered", got.Redelivered, string(got.Body))
	check(got.Ack(false))

	for number := 0; number < 10; number++ {
		publish(channel, "", queue, false, amqp.Publishing{Body: []byte(fmt.Sprint(number))})
		<-confirms
	}
	reader := must(connection.Channel())
	check(reader.Qos(2, 0, false))
	arrived := must(reader.Consume(queue, "", false, false, false, false, nil))
	first, second := <-arrived, <-arrived
	waiting := must(channel.QueueInspect(queue)).Messages
	fmt.Printf("prefetched %s %s of 10, waiting %d\n", first.Body, second.Body, waiting)
	check(second.Ack(true))
	third, fourth := <-arrived, <-arrived
	fmt.Printf("then %s %s\n", third.Body, fourth.Body)
	check(reader.Close())

	if os.Args[3] == "delayed" {
		arguments := amqp.Table{"x-delayed-type": "direct"}
		check(channel.ExchangeDeclare("moving-go", "x-delayed-message", false, true, false, false, arguments))
		own := must(channel.QueueDeclare("", false, true, true, false, nil)).Name
		check(channel.QueueBind(own, "k", "moving-go", false, nil))
		due := must(channel.Consume(own, "", true, false, false, false, nil))
		started := time.Now()
		headers := amqp.Table{"x-delay": int32(300)}
		publish(channel, "moving-go", "k", false, amqp.Publishing{Body: []byte("late"), Headers: headers})
		<-confirms
		late := <-due
		fmt.Println("delayed", string(late.Body), time.Since(started) >= 299*time.Millisecond)
	}
	check(connection.Close())
}
