// Package consumer has what the consumers of all Go libraries share: their arguments and their log.
package consumer

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Options are the arguments, KEY=VALUE.
type Options map[string]string

// Begin returns the name of the consumer and its options, and creates its log.
func Begin() (string, Options) {
	options := Options{}
	for _, text := range os.Args[1:] {
		key, value, _ := strings.Cut(text, "=")
		options[key] = value
	}
	name := os.Getenv("TAILPACK_REPLICA")
	log, _ = os.Create(fmt.Sprintf("%s/%s.%d", os.Getenv("LOG_FOLDER"), name, os.Getpid()))
	return name, options
}

// Milliseconds returns the duration of an option that is a number of milliseconds.
func (options Options) Milliseconds(key string) time.Duration {
	number, _ := strconv.Atoi(options[key])
	return time.Duration(number) * time.Millisecond
}

// Brokers returns the addresses of the brokers.
func (options Options) Brokers() []string {
	return strings.Split(options["bootstrap.servers"], ",")
}

// Say writes a line with the time, what happened, and numbers such as partition and offset.
func Say(kind string, numbers ...any) {
	fmt.Fprintln(log, append([]any{time.Now().UnixMicro(), kind}, numbers...)...)
}

// SayPartitions writes a line with partitions.
func SayPartitions(kind string, partitions []int32) {
	numbers := []any{}
	for _, number := range partitions {
		numbers = append(numbers, number)
	}
	Say(kind, numbers...)
}

var log *os.File
