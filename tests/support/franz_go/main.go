// A franz-go consumer that knows nothing of us: what plain_consumer.py is for librdkafka, with the same arguments and log.
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

	"github.com/twmb/franz-go/pkg/kgo"
)

var log *os.File

func say(kind string, numbers ...any) {
	fmt.Fprintln(log, append([]any{time.Now().UnixMicro(), kind}, numbers...)...)
}

func milliseconds(text string) time.Duration {
	number, _ := strconv.Atoi(text)
	return time.Duration(number) * time.Millisecond
}

func main() {
	options := map[string]string{}
	for _, text := range os.Args[1:] {
		key, value, _ := strings.Cut(text, "=")
		options[key] = value
	}
	name, topic := os.Getenv("TAILPACK_REPLICA"), options["topic"]
	log, _ = os.Create(fmt.Sprintf("%s/%s.%d", os.Getenv("LOG_FOLDER"), name, os.Getpid()))
	places := func(kind string, found map[string][]int32) {
		numbers := []any{}
		for _, number := range found[topic] {
			numbers = append(numbers, number)
		}
		say(kind, numbers...)
	}
	chosen := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(options["bootstrap.servers"], ",")...), kgo.ConsumerGroup(options["group.id"]),
		kgo.ConsumeTopics(topic), kgo.ClientID(name), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, found map[string][]int32) { places("A", found) }),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, found map[string][]int32) { places("L", found) }),
		kgo.OnPartitionsRevoked(func(ctx context.Context, client *kgo.Client, found map[string][]int32) {
			client.CommitUncommittedOffsets(ctx)
			places("R", found)
		}),
	}
	if options["group.protocol"] == "consumer" {
		chosen = append(chosen, kgo.ServerSideBalancer())
	} else {
		chosen = append(chosen, kgo.Balancers(kgo.RangeBalancer()),
			kgo.HeartbeatInterval(milliseconds(options["heartbeat.interval.ms"])),
			kgo.SessionTimeout(milliseconds(options["session.timeout.ms"])))
	}
	client, err := kgo.NewClient(chosen...)
	if err != nil {
		panic(err)
	}
	stopped, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	for stopped.Err() == nil {
		client.PollFetches(stopped).EachRecord(func(one *kgo.Record) { say("E", one.Partition, one.Offset) })
		client.AllowRebalance()
	}
	client.CommitUncommittedOffsets(context.Background())
	client.CloseAllowingRebalance()
}
