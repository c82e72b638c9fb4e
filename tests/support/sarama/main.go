// A sarama consumer that knows nothing of us: what plain_consumer.py is for librdkafka, with the same arguments and log.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/IBM/sarama"
)

var log *os.File

func say(kind string, numbers ...any) {
	fmt.Fprintln(log, append([]any{time.Now().UnixMicro(), kind}, numbers...)...)
}

func milliseconds(text string) time.Duration {
	number, _ := strconv.Atoi(text)
	return time.Duration(number) * time.Millisecond
}

type handler struct{ topic string }

func (of handler) places(kind string, session sarama.ConsumerGroupSession) {
	numbers := []any{}
	for _, number := range session.Claims()[of.topic] {
		numbers = append(numbers, number)
	}
	say(kind, numbers...)
}

func (of handler) Setup(session sarama.ConsumerGroupSession) error {
	of.places("A", session)
	return nil
}

func (of handler) Cleanup(session sarama.ConsumerGroupSession) error {
	session.Commit()
	of.places("R", session)
	return nil
}

func (handler) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for one := range claim.Messages() {
		say("E", one.Partition, one.Offset)
		session.MarkMessage(one, "")
	}
	return nil
}

func main() {
	options := map[string]string{}
	for _, text := range os.Args[1:] {
		key, value, _ := strings.Cut(text, "=")
		options[key] = value
	}
	name, topic := os.Getenv("TAILPACK_REPLICA"), options["topic"]
	log, _ = os.Create(fmt.Sprintf("%s/%s.%d", os.Getenv("LOG_FOLDER"), name, os.Getpid()))
	config := sarama.NewConfig()
	config.ClientID = name
	config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategyRange()}
	config.Consumer.Group.Heartbeat.Interval = milliseconds(options["heartbeat.interval.ms"])
	config.Consumer.Group.Session.Timeout = milliseconds(options["session.timeout.ms"])
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.MaxWaitTime = 100 * time.Millisecond
	group, err := sarama.NewConsumerGroup(strings.Split(options["bootstrap.servers"], ","), options["group.id"], config)
	if err != nil {
		panic(err)
	}
	stopped, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	for stopped.Err() == nil {
		if err := group.Consume(stopped, []string{topic}, handler{topic}); err != nil {
			time.Sleep(100 * time.Millisecond)
		}
	}
	group.Close()
}
