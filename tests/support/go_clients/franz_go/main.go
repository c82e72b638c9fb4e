// A franz-go consumer that knows nothing of us: what plain_consumer.py is for librdkafka, with the same arguments and log.
package main

import (
	"context"
	"os/signal"
	"syscall"

	"github.com/twmb/franz-go/pkg/kgo"

	"tailpack/clients/consumer"
)

func main() {
	name, options := consumer.Begin()
	topic := options["topic"]
	places := consumer.SayPartitions
	chosen := []kgo.Opt{
		kgo.SeedBrokers(options.Brokers()...), kgo.ConsumerGroup(options["group.id"]),
		kgo.ConsumeTopics(topic), kgo.ClientID(name), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, found map[string][]int32) { places("A", found[topic]) }),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, found map[string][]int32) { places("L", found[topic]) }),
		kgo.OnPartitionsRevoked(func(ctx context.Context, client *kgo.Client, found map[string][]int32) {
			client.CommitUncommittedOffsets(ctx)
			places("R", found[topic])
		}),
	}
	if options["group.protocol"] == "consumer" {
		chosen = append(chosen, kgo.ServerSideBalancer())
	} else {
		chosen = append(chosen, kgo.Balancers(kgo.RangeBalancer()),
			kgo.HeartbeatInterval(options.Milliseconds("heartbeat.interval.ms")),
			kgo.SessionTimeout(options.Milliseconds("session.timeout.ms")))
	}
	client, err := kgo.NewClient(chosen...)
	if err != nil {
		panic(err)
	}
	stopped, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	for stopped.Err() == nil {
		client.PollFetches(stopped).EachRecord(func(one *kgo.Record) { consumer.Say("E", one.Partition, one.Offset) })
		client.AllowRebalance()
	}
	client.CommitUncommittedOffsets(context.Background())
	client.CloseAllowingRebalance()
}
