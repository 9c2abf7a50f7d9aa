// The libraries of Java, JavaScript and Go.

import { franzGoSettings, javaSettings, kafkajsSettings, saramaSettings } from "./snippet-security.js";

const java = {
  name: "java",
  label: "Java",
  install: "org.apache.kafka:kafka-clients",
  parts: [
    [
      "Produce",
      ({ address, topic, security }) => `import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

class Produce {
    public static void main(String[] args) {
        Map<String, Object> settings = Map.of("bootstrap.servers", "${address}"${javaSettings(security)});
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            producer.send(new ProducerRecord<>("${topic}", "customer-1", "two coffees"));
        }
    }
}
`,
    ],
    [
      "Consume",
      ({ address, topic, security }) => `import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

class Consume {
    public static void main(String[] args) {
        Map<String, Object> settings =
            Map.of("bootstrap.servers", "${address}", "group.id", "kitchen", "auto.offset.reset", "earliest"${javaSettings(security)});
        try (var consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of("${topic}"));
            for (var message : consumer.poll(Duration.ofSeconds(10))) {
                System.out.println(message.offset() + " " + message.key() + " " + message.value());
            }
        }
    }
}
`,
    ],
  ],
};

const kafkajs = {
  name: "kafkajs",
  label: "kafkajs",
  install: "npm install kafkajs",
  parts: [
    [
      "Produce",
      ({ address, topic, security }) => `const { Kafka } = require("kafkajs");

async function main() {
  const producer = new Kafka({ brokers: ${JSON.stringify(address.split(","))}${kafkajsSettings(security)} }).producer();
  await producer.connect();
  await producer.send({ topic: "${topic}", messages: [{ key: "customer-1", value: "two coffees" }] });
  await producer.disconnect();
}

main();
`,
    ],
    [
      "Consume",
      ({ address, topic, security }) => `const { Kafka } = require("kafkajs");

async function main() {
  const consumer = new Kafka({ brokers: ${JSON.stringify(address.split(","))}${kafkajsSettings(security)} }).consumer({ groupId: "kitchen" });
  await consumer.connect();
  await consumer.subscribe({ topic: "${topic}", fromBeginning: true });
  await consumer.run({
    eachMessage: async ({ message }) => console.log(message.offset, String(message.key), String(message.value)),
  });
}

main();
`,
    ],
  ],
};

const franzGo = {
  name: "franz-go",
  label: "franz-go",
  install: "go get github.com/twmb/franz-go",
  parts: [
    [
      "Produce and consume",
      ({ address, topic, security }) => `package main

import (
	"context"${franzGoSettings(security).standard}
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"${franzGoSettings(security).other}
)

func main() {
	ctx := context.Background()
	client, err := kgo.NewClient(
		kgo.SeedBrokers(${quoted(address)}),${franzGoSettings(security).options}
		kgo.ConsumerGroup("kitchen"),
		kgo.ConsumeTopics("${topic}"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.AllowAutoTopicCreation(),
	)
	if err != nil {
		panic(err)
	}
	defer client.Close()

	record := &kgo.Record{Topic: "${topic}", Key: []byte("customer-1"), Value: []byte("two coffees")}
	if err := client.ProduceSync(ctx, record).FirstErr(); err != nil {
		panic(err)
	}
	client.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
		fmt.Println(r.Offset, string(r.Key), string(r.Value))
	})
}
`,
    ],
  ],
};

const sarama = {
  name: "sarama",
  label: "Sarama",
  install: "go get github.com/IBM/sarama",
  parts: [
    [
      "Produce and consume",
      ({ address, topic, security }) => `package main

import (
	"fmt"

	"github.com/IBM/sarama"
)

func main() {
	config := sarama.NewConfig()
	config.Producer.Return.Successes = true${saramaSettings(security)}
	client, err := sarama.NewClient([]string{${quoted(address)}}, config)
	if err != nil {
		panic(err)
	}
	defer client.Close()

	producer, err := sarama.NewSyncProducerFromClient(client)
	if err != nil {
		panic(err)
	}
	message := &sarama.ProducerMessage{
		Topic: "${topic}", Key: sarama.StringEncoder("customer-1"), Value: sarama.StringEncoder("two coffees"),
	}
	partition, offset, err := producer.SendMessage(message)
	if err != nil {
		panic(err)
	}

	consumer, err := sarama.NewConsumerFromClient(client)
	if err != nil {
		panic(err)
	}
	reader, err := consumer.ConsumePartition("${topic}", partition, offset)
	if err != nil {
		panic(err)
	}
	read := <-reader.Messages()
	fmt.Println(read.Offset, string(read.Key), string(read.Value))
}
`,
    ],
  ],
};

function quoted(address) {
  return address
    .split(",")
    .map((one) => JSON.stringify(one))
    .join(", ");
}

export const COMPILED = [java, kafkajs, franzGo, sarama];
