// A sarama consumer that knows nothing of us: what plain_consumer.py is for librdkafka, with the same arguments and log.
package main

import (
	"context"
	"os/signal"
	"syscall"
	"time"

	"github.com/IBM/sarama"

	"tailpack/clients/consumer"
)

type handler struct{ topic string }

func (of handler) Setup(session sarama.ConsumerGroupSession) error {
	consumer.SayPartitions("A", session.Claims()[of.topic])
	return nil
}

func (of handler) Cleanup(session sarama.ConsumerGroupSession) error {
	session.Commit()
	consumer.SayPartitions("R", session.Claims()[of.topic])
	return nil
}

func (handler) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for one := range claim.Messages() {
		consumer.Say("E", one.Partition, one.Offset)
		session.MarkMessage(one, "")
	}
	return nil
}

func main() {
	name, options := consumer.Begin()
	config := sarama.NewConfig()
	config.ClientID = name
	config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategyRange()}
	config.Consumer.Group.Heartbeat.Interval = options.Milliseconds("heartbeat.interval.ms")
	config.Consumer.Group.Session.Timeout = options.Milliseconds("session.timeout.ms")
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.MaxWaitTime = 100 * time.Millisecond
	group, err := sarama.NewConsumerGroup(options.Brokers(), options["group.id"], config)
	if err != nil {
		panic(err)
	}
	stopped, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	for stopped.Err() == nil {
		if err := group.Consume(stopped, []string{options["topic"]}, handler{options["topic"]}); err != nil {
			time.Sleep(100 * time.Millisecond)
		}
	}
	group.Close()
}
