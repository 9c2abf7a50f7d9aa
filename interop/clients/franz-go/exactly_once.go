package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"
)

// The loop of ../README.md: BOOTSTRAP SOURCE TARGET COUNT, and "old" for the flow from before KIP-890.
func exactlyOnce(ctx context.Context, arguments []string) {
	target := arguments[2]
	options := []kgo.Opt{
		kgo.SeedBrokers(arguments[0]),
		kgo.TransactionalID(target),
		kgo.TransactionTimeout(2 * time.Second), // franz-go asks for its id late, and what is open holds up the group
		kgo.DefaultProduceTopic(target),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.MetadataMinAge(50 * time.Millisecond),
		kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }),
	}
	if len(arguments) > 4 {
		options = append(options, kgo.MaxVersions(kversion.V3_7_0()))
	}
	run(ctx, options, arguments[1], target, must(strconv.ParseInt(arguments[3], 10, 64)))
	replace(ctx, options)
}

func run(ctx context.Context, options []kgo.Opt, source, target string, count int64) {
	group := target + "-group"
	reading := []kgo.Opt{
		kgo.ConsumerGroup(group),
		kgo.InstanceID("only"), // so that the group does not wait for one before that could not say goodbye
		kgo.ConsumeTopics(source),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.RequireStableFetchOffsets(),
		kgo.FetchMaxWait(100 * time.Millisecond),
		kgo.HeartbeatInterval(200 * time.Millisecond),
	}
	options = append(slices.Clone(options), reading...)
	session := must(kgo.NewGroupTransactSession(options...))
	defer func() { session.Close() }()
	for number := 1; progress(ctx, session.Client(), group) < count; number++ {
		polling, stop := context.WithTimeout(ctx, 500*time.Millisecond)
		fetched := session.PollRecords(polling, 20)
		stop()
		if fetched.NumRecords() == 0 {
			continue
		}
		if err := transform(ctx, session, fetched, number%3 != 0); err != nil {
			log.Println(err)
			session.Close() // whoever comes next begins where the group is
			session = must(kgo.NewGroupTransactSession(options...))
		}
	}
}

func transform(ctx context.Context, session *kgo.GroupTransactSession, fetched kgo.Fetches, isKept bool) error {
	check(session.Begin())
	var sent []*kgo.Record
	fetched.EachRecord(func(each *kgo.Record) {
		value := []byte("aborted")
		if isKept {
			value = fmt.Appendf(nil, "made of %s", each.Value)
		}
		sent = append(sent, &kgo.Record{Partition: each.Partition, Key: each.Key, Value: value})
	})
	failed := session.ProduceSync(ctx, sent...).FirstErr()
	fmt.Println("sent")
	_, err := session.End(ctx, kgo.TransactionEndTry(isKept && failed == nil))
	return errors.Join(failed, err)
}

func progress(ctx context.Context, client *kgo.Client, group string) int64 {
	check(ctx.Err())
	var sum int64
	if fetched, err := kadm.NewClient(client).FetchOffsets(ctx, group); err == nil {
		fetched.Each(func(each kadm.OffsetResponse) { sum += max(each.At, 0) })
	}
	return sum
}

// Another producer takes over the name, and what the one before it does comes to nothing.
func replace(ctx context.Context, options []kgo.Opt) {
	zombie := must(kgo.NewClient(options...))
	check(zombie.BeginTransaction())
	check(zombie.ProduceSync(ctx, &kgo.Record{Value: []byte("zombie")}).FirstErr())
	successor := must(kgo.NewClient(options...))
	check(successor.BeginTransaction())
	check(successor.ProduceSync(ctx, &kgo.Record{Value: []byte("last")}).FirstErr())
	err := zombie.ProduceSync(ctx, &kgo.Record{Value: []byte("zombie again")}).FirstErr()
	if errors.Is(err, kerr.ProducerFenced) || errors.Is(err, kerr.InvalidProducerEpoch) {
		fmt.Println("fenced")
	} else {
		fmt.Println("not fenced:", err)
	}
	check(successor.EndTransaction(ctx, kgo.TryCommit))
	successor.Close()
	zombie.Close()
}
