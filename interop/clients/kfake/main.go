// kfake, the fake cluster of franz-go: started and asked in one binary, as a Go test would, or served to another process.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func start(more ...kfake.Opt) *kfake.Cluster {
	options := []kfake.Opt{kfake.NumBrokers(1), kfake.AllowAutoTopicCreation(), kfake.DefaultNumPartitions(1)}
	cluster, err := kfake.NewCluster(append(options, more...)...)
	check(err)
	return cluster
}

func firstRecord() time.Duration {
	began := time.Now()
	cluster := start()
	defer cluster.Close()
	client, err := kgo.NewClient(
		kgo.SeedBrokers(cluster.ListenAddrs()...),
		kgo.AllowAutoTopicCreation(),
		kgo.ConsumeTopics("t"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	check(err)
	defer client.Close()
	check(client.ProduceSync(context.Background(), &kgo.Record{Topic: "t", Value: []byte("x")}).FirstErr())
	for client.PollFetches(context.Background()).NumRecords() == 0 {
	}
	return time.Since(began)
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "first-record" {
		fmt.Println(float64(firstRecord().Microseconds()) / 1000)
		return
	}
	if len(os.Args) > 1 {
		port, err := strconv.Atoi(os.Args[1])
		check(err)
		defer start(kfake.Ports(port)).Close()
		select {}
	}
	cluster := start()
	defer cluster.Close()
	fmt.Println(cluster.ListenAddrs()[0])
	_, _ = io.Copy(io.Discard, os.Stdin)
}
