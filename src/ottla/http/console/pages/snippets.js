// A producer and a consumer for each client library. `address` is what Kafka clients connect to, `http` where this page
// came from.

import { COMPILED } from "./snippets-compiled.js";

const confluent = {
  name: "confluent-kafka",
  label: "confluent-kafka",
  install: "pip install confluent-kafka",
  parts: [
    [
      "Produce",
      ({ address, topic }) => `from confluent_kafka import Producer

producer = Producer({"bootstrap.servers": "${address}"})
producer.produce("${topic}", key="customer-1", value="two coffees")
producer.flush()
`,
    ],
    [
      "Consume",
      ({ address, topic }) => `from confluent_kafka import Consumer

consumer = Consumer({"bootstrap.servers": "${address}", "group.id": "kitchen", "auto.offset.reset": "earliest"})
consumer.subscribe(["${topic}"])
message = consumer.poll(10)
print(message.offset(), message.key(), message.value())
consumer.close()
`,
    ],
  ],
};

const aiokafka = {
  name: "aiokafka",
  label: "aiokafka",
  install: "pip install aiokafka",
  parts: [
    [
      "Produce",
      ({ address, topic }) => `import asyncio

from aiokafka import AIOKafkaProducer


async def main():
    async with AIOKafkaProducer(bootstrap_servers="${address}") as producer:
        await producer.send_and_wait("${topic}", key=b"customer-1", value=b"two coffees")


asyncio.run(main())
`,
    ],
    [
      "Consume",
      ({ address, topic }) => `import asyncio

from aiokafka import AIOKafkaConsumer


async def main():
    settings = {"bootstrap_servers": "${address}", "group_id": "kitchen", "auto_offset_reset": "earliest"}
    async with AIOKafkaConsumer("${topic}", **settings) as consumer:
        message = await consumer.getone()
        print(message.offset, message.key, message.value)


asyncio.run(main())
`,
    ],
  ],
};

const kafkaPython = {
  name: "kafka-python",
  label: "kafka-python",
  install: "pip install kafka-python",
  parts: [
    [
      "Produce",
      ({ address, topic }) => `from kafka import KafkaProducer

producer = KafkaProducer(bootstrap_servers="${address}")
producer.send("${topic}", key=b"customer-1", value=b"two coffees")
producer.close()
`,
    ],
    [
      "Consume",
      ({ address, topic }) => `from kafka import KafkaConsumer

consumer = KafkaConsumer(
    "${topic}", bootstrap_servers="${address}", group_id="kitchen", auto_offset_reset="earliest"
)
message = next(consumer)
print(message.offset, message.key, message.value)
consumer.close()
`,
    ],
  ],
};

const ottla = {
  name: "ottla.client",
  label: "ottla.client",
  install: "pip install ottla",
  parts: [
    [
      "Produce",
      ({ address, topic }) => `import asyncio

from ottla.client import Client


async def main():
    async with Client("${address}") as client, client.producer() as producer:
        await producer.send("${topic}", key=b"customer-1", value=b"two coffees")


asyncio.run(main())
`,
    ],
    [
      "Consume",
      ({ address, topic }) => `import asyncio

from ottla.client import Client


async def main():
    options = {"group": "kitchen", "auto_offset_reset": "earliest"}
    async with Client("${address}") as client, client.consumer("${topic}", **options) as consumer:
        async for record in consumer:
            print(record.offset, record.key, record.value)
            break


asyncio.run(main())
`,
    ],
  ],
};

const kcat = {
  name: "kcat",
  label: "kcat",
  install: "apt install kcat",
  parts: [
    [
      "Produce",
      ({ address, topic }) => `echo 'customer-1:two coffees' | kcat -b ${address} -P -t ${topic} -K:
`,
    ],
    [
      "Consume",
      ({ address, topic }) => `kcat -b ${address} -C -t ${topic} -o beginning -e -K:
`,
    ],
  ],
};

const curl = {
  name: "curl",
  label: "curl",
  install: "apt install curl",
  parts: [
    [
      "Produce",
      ({ http, topic }) => `curl -H 'Content-Type: application/json' '${http}/v1/topics/${topic}/messages' \\
  -d '{"messages": [{"key": "customer-1", "value": "two coffees"}]}'
`,
    ],
    [
      "Consume",
      ({ http, topic }) => `curl '${http}/v1/topics/${topic}/messages?last=10'
`,
    ],
    [
      "Follow",
      ({ http, topic }) => `curl -N '${http}/v1/topics/${topic}/tail'
`,
    ],
  ],
};

export const SNIPPETS = [confluent, aiokafka, kafkaPython, ottla, ...COMPILED, kcat, curl];
