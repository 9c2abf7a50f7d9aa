// Commands and programs that read one message, or write it again.

import { Payload } from "../decode/payload.js";
import { toBase64 } from "../decode/bytes.js";
import { url, withQuery } from "../parts/api.js";

/** [[label, (address) → text], …] */
export function copiesOf(topic, message) {
  const { partition, offset } = message;
  const here = location.origin;
  const read = withQuery(url`/v1/topics/${topic}/messages`, { partition, offset, limit: 1 });
  const write = url`/v1/topics/${topic}/messages`;
  return [
    ["kcat", (address) => `kcat -b ${address} -C -t ${shell(topic)} -p ${partition} -o ${offset} -c 1 -e`],
    ["curl", () => `curl ${shell(here + read)}`],
    [
      "curl that writes it again",
      () => `curl -H 'Content-Type: application/json' ${shell(here + write)} -d ${shell(bodyOf(message))}`,
    ],
    ["Python", (address) => python(address, topic, partition, offset)],
    ["value", () => new Payload(message.value).text ?? message.value ?? ""],
  ];
}

function shell(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function bodyOf(message) {
  const one = { ...fieldOf("key", message.key), ...fieldOf("value", message.value) };
  if (message.headers.length) {
    one.headers = message.headers.map(({ name, value, encoding }) =>
      encoding === "json" ? { name, value: JSON.stringify(value) } : { name, value, encoding },
    );
  }
  return JSON.stringify({ messages: [one] });
}

function fieldOf(name, encoded) {
  if (encoded === null) return {};
  const payload = new Payload(encoded);
  return payload.text === undefined
    ? { [name]: toBase64(payload.bytes), [`${name}_encoding`]: "base64" }
    : { [name]: payload.text };
}

function python(address, topic, partition, offset) {
  return `from confluent_kafka import Consumer, TopicPartition

consumer = Consumer({"bootstrap.servers": "${address}", "group.id": "look", "enable.auto.commit": False})
consumer.assign([TopicPartition("${topic}", ${partition}, ${offset})])
message = consumer.poll(10)
print(message.key(), message.value(), message.headers())
consumer.close()
`;
}
