// The scenario of ../README.md with franz-go.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	records    = 100
	partitions = 5
	deadline   = 50 * time.Second
)

var codecs = []kgo.CompressionCodec{
	kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression(),
}

type play struct {
	ctx              context.Context
	bootstrap, topic string
	group            string
	base             int64
	admin            *kadm.Client
	report           map[string]any
}

func main() {
	log.SetFlags(0)
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	if os.Args[1] == "exactly-once" {
		exactlyOnce(ctx, os.Args[2:])
		return
	}
	if os.Args[1] == "registry" {
		registry(ctx, os.Args[2:])
		return
	}
	base := must(strconv.ParseInt(os.Args[3], 10, 64))
	client := must(kgo.NewClient(kgo.SeedBrokers(os.Args[1])))
	defer client.Close()
	r := &play{ctx, os.Args[1], os.Args[2], os.Args[2] + "-group", base, kadm.NewClient(client), map[string]any{}}
	r.createTopic()
	first, second := r.join(), r.join()
	r.balance(first, second)
	r.produce()
	r.consume(first, second)
	r.offsets()
	r.clean()
	check(json.NewEncoder(os.Stdout).Encode(r.report))
}

func (r *play) createTopic() {
	retention := "86400000"
	must(r.admin.CreateTopic(r.ctx, 2, 1, map[string]*string{"retention.ms": &retention}, r.topic))
	r.report["created"] = r.described()
	answers := must(r.admin.UpdatePartitions(r.ctx, partitions, r.topic))
	check(answers.Error())
	shorter := "3600000"
	altered := must(r.admin.AlterTopicConfigs(r.ctx, []kadm.AlterConfig{{Name: "retention.ms", Value: &shorter}}, r.topic))
	check(altered[0].Err)
	r.report["altered"] = r.described()
}

func (r *play) described() []any {
	details := must(r.admin.ListTopics(r.ctx, r.topic))
	configs := must(must(r.admin.DescribeTopicConfigs(r.ctx, r.topic)).On(r.topic, nil))
	at := slices.IndexFunc(configs.Configs, func(c kadm.Config) bool { return c.Key == "retention.ms" })
	return []any{len(details[r.topic].Partitions), configs.Configs[at].MaybeValue()}
}

// A member, and what it has: franz-go tells of changes only.
type member struct {
	*kgo.Client
	lock  sync.Mutex
	owned map[int32]bool
}

func (m *member) count() int {
	m.lock.Lock()
	defer m.lock.Unlock()
	return len(m.owned)
}

func (r *play) join() *member {
	m := &member{owned: map[int32]bool{}}
	change := func(owns bool) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, changed map[string][]int32) {
			m.lock.Lock()
			defer m.lock.Unlock()
			for _, p := range changed[r.topic] {
				if owns {
					m.owned[p] = true
				} else {
					delete(m.owned, p)
				}
			}
		}
	}
	m.Client = must(kgo.NewClient(
		kgo.SeedBrokers(r.bootstrap),
		kgo.ConsumerGroup(r.group),
		kgo.ConsumeTopics(r.topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.Balancers(kgo.RoundRobinBalancer()),
		kgo.DisableAutoCommit(),
		kgo.HeartbeatInterval(200*time.Millisecond),
		kgo.FetchMaxWait(100*time.Millisecond),
		kgo.OnPartitionsAssigned(change(true)),
		kgo.OnPartitionsRevoked(change(false)),
		kgo.OnPartitionsLost(change(false)),
	))
	return m
}

func (r *play) balance(first, second *member) {
	var counts []int
	r.until(func() bool {
		counts = []int{first.count(), second.count()}
		slices.Sort(counts)
		return counts[0] > 0 && counts[0]+counts[1] == partitions
	})
	r.report["assigned"] = counts
}

func (r *play) produce() {
	produced := map[string][]int64{}
	for partition, codec := range codecs {
		producer := must(kgo.NewClient(
			kgo.SeedBrokers(r.bootstrap),
			kgo.ProducerBatchCompression(codec),
			kgo.RecordPartitioner(kgo.ManualPartitioner()),
			kgo.ProducerLinger(5*time.Millisecond),
		))
		var batch []*kgo.Record
		for n := range records {
			record := &kgo.Record{
				Topic: r.topic, Partition: int32(partition), Key: fmt.Appendf(nil, "key-%d", n),
				Headers:   []kgo.RecordHeader{{Key: "n", Value: []byte(strconv.Itoa(n))}},
				Timestamp: time.UnixMilli(r.base + int64(n)),
			}
			if n%10 != 9 {
				record.Value = fmt.Appendf(nil, "%d-%d", partition, n)
			}
			batch = append(batch, record)
		}
		results := producer.ProduceSync(r.ctx, batch...)
		check(results.FirstErr())
		var offsets []int64
		for _, result := range results {
			offsets = append(offsets, result.Record.Offset)
		}
		produced[strconv.Itoa(partition)] = []int64{slices.Min(offsets), slices.Max(offsets)}
		producer.Close()
	}
	r.report["produced"] = produced
}

func (r *play) consume(first, second *member) {
	consumed := map[string][]string{}
	missing := partitions * records
	var both sync.WaitGroup
	var lock sync.Mutex
	done, stop := context.WithCancel(r.ctx)
	defer stop()
	for _, m := range []*member{first, second} {
		both.Go(func() {
			for done.Err() == nil {
				fetched := m.PollFetches(done)
				lock.Lock()
				fetched.EachRecord(func(record *kgo.Record) {
					partition := strconv.Itoa(int(record.Partition))
					consumed[partition] = append(consumed[partition], line(record))
					missing--
				})
				if missing <= 0 {
					stop()
				}
				lock.Unlock()
			}
		})
	}
	both.Wait()
	check(r.ctx.Err())
	r.report["consumed"] = consumed
	described := must(r.admin.DescribeGroups(r.ctx, r.group))[r.group]
	r.report["group"] = []any{described.State, len(described.Members)}
	check(first.CommitUncommittedOffsets(r.ctx))
	check(second.CommitUncommittedOffsets(r.ctx))
	second.Close()
	r.until(func() bool { return first.count() == partitions })
	r.report["after_leave"] = first.count()
	first.Close()
}

func line(record *kgo.Record) string {
	value := "~"
	if record.Value != nil {
		value = string(record.Value)
	}
	header := string(record.Headers[0].Value)
	return fmt.Sprintf("%d %s %s %s %d", record.Offset, record.Key, value, header, record.Timestamp.UnixMilli())
}

func (r *play) offsets() {
	committed := map[string]int64{}
	fetched := must(r.admin.FetchOffsets(r.ctx, r.group))
	fetched.Each(func(o kadm.OffsetResponse) { committed[strconv.Itoa(int(o.Partition))] = o.At })
	r.report["committed"] = committed
	r.report["earliest"] = listed(must(r.admin.ListStartOffsets(r.ctx, r.topic)))
	r.report["latest"] = listed(must(r.admin.ListEndOffsets(r.ctx, r.topic)))
	r.report["at"] = listed(must(r.admin.ListOffsetsAfterMilli(r.ctx, r.base+50, r.topic)))
}

func listed(offsets kadm.ListedOffsets) map[string]int64 {
	found := map[string]int64{}
	check(offsets.Error())
	offsets.Each(func(o kadm.ListedOffset) { found[strconv.Itoa(int(o.Partition))] = o.Offset })
	return found
}

func (r *play) clean() {
	until := kadm.Offsets{}
	until.AddOffset(r.topic, 0, 30, -1)
	deleted := must(r.admin.DeleteRecords(r.ctx, until))
	check(deleted.Error())
	r.report["low_watermark"] = deleted[r.topic][0].LowWatermark
	must(r.admin.CreateTopic(r.ctx, 1, 1, nil, r.topic+"-gone"))
	check(must(r.admin.DeleteTopics(r.ctx, r.topic+"-gone")).Error())
	check(must(r.admin.DeleteGroups(r.ctx, r.group)).Error())
	r.report["topics"] = r.ours(must(r.admin.ListTopics(r.ctx)).Names())
	r.report["groups"] = r.ours(must(r.admin.ListGroups(r.ctx)).Groups())
}

func (r *play) ours(names []string) []string {
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.Contains(name, r.topic) })
	slices.SortFunc(names, cmp.Compare[string])
	return append([]string{}, names...)
}

func (r *play) until(is func() bool) {
	for !is() {
		check(r.ctx.Err())
		time.Sleep(10 * time.Millisecond)
	}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		log.Panic(err)
	}
}
