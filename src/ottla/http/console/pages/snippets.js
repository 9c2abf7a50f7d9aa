// A producer and a consumer for each client library. `address` is the address for Kafka clients, `http` that of this page,
// `security` what the listener requires, and `curlOptions` what HTTP requires.

import { kcatOptions, ottlaSecurity, pythonArguments, pythonDict, SSL_CAFILE, SSL_CONTEXT } from "./snippet-security.js";
import { COMPILED } from "./snippets-compiled.js";

function aioSecurity(security) {
  const { before, more } = pythonArguments(security, SSL_CONTEXT);
  const imports = security.usesTls ? "from aiokafka.helpers import create_ssl_context\n" : "";
  return { before: before && `${imports}\n${before}`, more };
}

function kafkaPythonSecurity(security) {
  return pythonArguments(security, SSL_CAFILE);
}

function ottlaClient(security) {
  const given = ottlaSecurity(security);
  return given ? { imports: ", Security", more: `, security=Security(${given})` } : { imports: "", more: "" };
}

const confluent = {
  name: "confluent-kafka",
  label: "confluent-kafka",
  install: "pip install confluent-kafka",
  parts: [
    [
      "Produce",
      ({ address, topic, security }) => `from confluent_kafka import Producer

${pythonDict(security).before}producer = Producer({"bootstrap.servers": "${address}"${pythonDict(security).more}})
producer.produce("${topic}", key="customer-1", value="two coffees")
producer.flush()
`,
    ],
    [
      "Consume",
      ({ address, topic, security }) => `from confluent_kafka import Consumer

${pythonDict(security).before}settings = {"group.id": "kitchen", "auto.offset.reset": "earliest"}
consumer = Consumer({"bootstrap.servers": "${address}", **settings${pythonDict(security).more}})
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
      ({ address, topic, security }) => `import asyncio

from aiokafka import AIOKafkaProducer
${aioSecurity(security).before}

async def main():
    async with AIOKafkaProducer(bootstrap_servers="${address}"${aioSecurity(security).more}) as producer:
        await producer.send_and_wait("${topic}", key=b"customer-1", value=b"two coffees")


asyncio.run(main())
`,
    ],
    [
      "Consume",
      ({ address, topic, security }) => `import asyncio

from aiokafka import AIOKafkaConsumer
${aioSecurity(security).before}

async def main():
    settings = {"bootstrap_servers": "${address}", "group_id": "kitchen", "auto_offset_reset": "earliest"}
    async with AIOKafkaConsumer("${topic}", **settings${aioSecurity(security).more}) as consumer:
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
      ({ address, topic, security }) => `from kafka import KafkaProducer

${kafkaPythonSecurity(security).before}producer = KafkaProducer(bootstrap_servers="${address}"${kafkaPythonSecurity(security).more})
producer.send("${topic}", key=b"customer-1", value=b"two coffees")
producer.close()
`,
    ],
    [
      "Consume",
      ({ address, topic, security }) => `from kafka import KafkaConsumer

${kafkaPythonSecurity(security).before}settings = {"group_id": "kitchen", "auto_offset_reset": "earliest"}
consumer = KafkaConsumer("${topic}", bootstrap_servers="${address}", **settings${kafkaPythonSecurity(security).more})
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
      ({ address, topic, security }) => `import asyncio

from ottla.client import Client${ottlaClient(security).imports}


async def main():
    async with Client("${address}"${ottlaClient(security).more}) as client, client.producer() as producer:
        await producer.send("${topic}", key=b"customer-1", value=b"two coffees")


asyncio.run(main())
`,
    ],
    [
      "Consume",
      ({ address, topic, security }) => `import asyncio

from ottla.client import Client${ottlaClient(security).imports}


async def main():
    options = {"group": "kitchen", "auto_offset_reset": "earliest"}
    async with Client("${address}"${ottlaClient(security).more}) as client, client.consumer("${topic}", **options) as consumer:
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
      ({ address, topic, security }) => `echo 'customer-1:two coffees' | kcat -b ${address}${kcatOptions(security)} -P -t ${topic} -K:
`,
    ],
    [
      "Consume",
      ({ address, topic, security }) => `kcat -b ${address}${kcatOptions(security)} -C -t ${topic} -o beginning -e -K:
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
      ({ http, topic, curlOptions }) => `curl${curlOptions} -H 'Content-Type: application/json' '${http}/v1/topics/${topic}/messages' \\
  -d '{"messages": [{"key": "customer-1", "value": "two coffees"}]}'
`,
    ],
    [
      "Consume",
      ({ http, topic, curlOptions }) => `curl${curlOptions} '${http}/v1/topics/${topic}/messages?last=10'
`,
    ],
    [
      "Follow",
      ({ http, topic, curlOptions }) => `curl${curlOptions} -N '${http}/v1/topics/${topic}/tail'
`,
    ],
  ],
};

export const SNIPPETS = [confluent, aiokafka, kafkaPython, ottla, ...COMPILED, kcat, curl];
