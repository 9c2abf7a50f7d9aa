// The scenario of ../README.md with Sarama.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

const (
	records    = 100
	partitions = 5
	deadline   = 50 * time.Second
)

type run struct {
	ctx              context.Context
	bootstrap, topic string
	group            string
	base             int64
	admin            sarama.ClusterAdmin
	report           map[string]any
}

func main() {
	log.SetFlags(0)
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	base := must(strconv.ParseInt(os.Args[3], 10, 64))
	admin := must(sarama.NewClusterAdmin([]string{os.Args[1]}, config()))
	r := &run{ctx, os.Args[1], os.Args[2], os.Args[2] + "-group", base, admin, map[string]any{}}
	r.createTopic()
	inbox := make(chan *sarama.ConsumerMessage, partitions*records)
	first, second := r.join(inbox), r.join(inbox)
	r.balance(first, second)
	r.produce()
	r.consume(inbox)
	r.leave(first, second)
	r.offsets()
	r.clean()
	check(admin.Close())
	check(json.NewEncoder(os.Stdout).Encode(r.report))
}

func config() *sarama.Config {
	c := sarama.NewConfig()
	c.Version = sarama.MaxVersion
	c.Metadata.AllowAutoTopicCreation = false
	return c
}

func (r *run) createTopic() {
	retention := "86400000"
	check(r.admin.CreateTopic(r.topic, &sarama.TopicDetail{
		NumPartitions: 2, ReplicationFactor: 1, ConfigEntries: map[string]*string{"retention.ms": &retention},
	}, false))
	r.report["created"] = r.described()
	check(r.admin.CreatePartitions(r.topic, partitions, nil, false))
	shorter := "3600000"
	set := sarama.IncrementalAlterConfigsEntry{Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &shorter}
	entries := map[string]sarama.IncrementalAlterConfigsEntry{"retention.ms": set}
	check(r.admin.IncrementalAlterConfig(sarama.TopicResource, r.topic, entries, false))
	r.report["altered"] = r.described()
}

func (r *run) described() []any {
	topic := must(r.admin.DescribeTopics([]string{r.topic}))[0]
	resource := sarama.ConfigResource{Type: sarama.TopicResource, Name: r.topic, ConfigNames: []string{"retention.ms"}}
	return []any{len(topic.Partitions), must(r.admin.DescribeConfig(resource))[0].Value}
}

// A member: its handler, and how many partitions it has, 0 while it has no session.
type member struct {
	sarama.ConsumerGroup
	inbox chan *sarama.ConsumerMessage
	topic string
	lock  sync.Mutex
	owned int
}

func (m *member) Setup(s sarama.ConsumerGroupSession) error {
	m.has(len(s.Claims()[m.topic]))
	return nil
}

func (m *member) Cleanup(sarama.ConsumerGroupSession) error {
	m.has(0)
	return nil
}

func (m *member) ConsumeClaim(s sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		s.MarkMessage(message, "")
		m.inbox <- message
	}
	return nil
}

func (m *member) has(count int) {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.owned = count
}

func (m *member) count() int {
	m.lock.Lock()
	defer m.lock.Unlock()
	return m.owned
}

func (r *run) join(inbox chan *sarama.ConsumerMessage) *member {
	c := config()
	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	c.Consumer.Group.Heartbeat.Interval = 200 * time.Millisecond
	c.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategyRoundRobin()}
	m := &member{ConsumerGroup: must(sarama.NewConsumerGroup([]string{r.bootstrap}, r.group, c)), inbox: inbox, topic: r.topic}
	go func() {
		for {
			err := m.Consume(r.ctx, []string{r.topic}, m)
			if err == sarama.ErrClosedConsumerGroup || r.ctx.Err() != nil {
				return
			}
			check(err)
		}
	}()
	return m
}

func (r *run) balance(first, second *member) {
	var counts []int
	r.until(func() bool {
		counts = []int{first.count(), second.count()}
		slices.Sort(counts)
		return counts[0] > 0 && counts[0]+counts[1] == partitions
	})
	r.report["assigned"] = counts
}

func (r *run) produce() {
	produced := map[string][]int64{}
	for partition := range int32(partitions) {
		c := config()
		c.Producer.Compression = sarama.CompressionCodec(partition)
		c.Producer.Partitioner = sarama.NewManualPartitioner
		c.Producer.RequiredAcks = sarama.WaitForAll
		c.Producer.Idempotent = true
		c.Net.MaxOpenRequests = 1
		c.Producer.Return.Successes = true
		producer := must(sarama.NewSyncProducer([]string{r.bootstrap}, c))
		var messages []*sarama.ProducerMessage
		for n := range records {
			message := &sarama.ProducerMessage{
				Topic: r.topic, Partition: partition, Key: sarama.StringEncoder(fmt.Sprintf("key-%d", n)),
				Headers:   []sarama.RecordHeader{{Key: []byte("n"), Value: []byte(strconv.Itoa(n))}},
				Timestamp: time.UnixMilli(r.base + int64(n)),
			}
			if n%10 != 9 {
				message.Value = sarama.StringEncoder(fmt.Sprintf("%d-%d", partition, n))
			}
			messages = append(messages, message)
		}
		check(producer.SendMessages(messages))
		produced[strconv.Itoa(int(partition))] = []int64{messages[0].Offset, messages[records-1].Offset}
		check(producer.Close())
	}
	r.report["produced"] = produced
}

func (r *run) consume(inbox chan *sarama.ConsumerMessage) {
	consumed := map[string][]string{}
	for range partitions * records {
		select {
		case message := <-inbox:
			partition := strconv.Itoa(int(message.Partition))
			consumed[partition] = append(consumed[partition], line(message))
		case <-r.ctx.Done():
			check(fmt.Errorf("not all was consumed: %v", consumed))
		}
	}
	r.report["consumed"] = consumed
}

func line(message *sarama.ConsumerMessage) string {
	value := "~"
	if message.Value != nil {
		value = string(message.Value)
	}
	header := message.Headers[0].Value
	return fmt.Sprintf("%d %s %s %s %d", message.Offset, message.Key, value, header, message.Timestamp.UnixMilli())
}

func (r *run) leave(first, second *member) {
	described := must(r.admin.DescribeConsumerGroups([]string{r.group}))[0]
	r.report["group"] = []any{described.State, len(described.Members)}
	check(second.Close())
	r.until(func() bool { return first.count() == partitions })
	r.report["after_leave"] = first.count()
	check(first.Close())
}

func (r *run) offsets() {
	committed := map[string]int64{}
	fetched := must(r.admin.ListConsumerGroupOffsets(r.group, nil))
	for partition, block := range fetched.Blocks[r.topic] {
		committed[strconv.Itoa(int(partition))] = block.Offset
	}
	r.report["committed"] = committed
	r.report["earliest"] = r.listed(sarama.OffsetOldest)
	r.report["latest"] = r.listed(sarama.OffsetNewest)
	r.report["at"] = r.listed(r.base + 50)
}

func (r *run) listed(at int64) map[string]int64 {
	asked := map[int32]int64{}
	for partition := range int32(partitions) {
		asked[partition] = at
	}
	found := map[string]int64{}
	answers := must(r.admin.ListOffsets(map[string]map[int32]int64{r.topic: asked}, nil))
	for partition, answer := range answers[r.topic] {
		if answer.Err != sarama.ErrNoError {
			check(answer.Err)
		}
		found[strconv.Itoa(int(partition))] = answer.Offset
	}
	return found
}

func (r *run) clean() {
	check(r.admin.DeleteRecords(r.topic, map[int32]int64{0: 30}))
	r.report["low_watermark"] = r.listed(sarama.OffsetOldest)["0"]
	check(r.admin.CreateTopic(r.topic+"-gone", &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 1}, false))
	check(r.admin.DeleteTopic(r.topic + "-gone"))
	check(r.admin.DeleteConsumerGroup(r.group))
	r.report["topics"] = r.ours(slices.Collect(maps.Keys(must(r.admin.ListTopics()))))
	r.report["groups"] = r.ours(slices.Collect(maps.Keys(must(r.admin.ListConsumerGroups()))))
}

func (r *run) ours(names []string) []string {
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.Contains(name, r.topic) })
	slices.Sort(names)
	return append([]string{}, names...)
}

func (r *run) until(is func() bool) {
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
