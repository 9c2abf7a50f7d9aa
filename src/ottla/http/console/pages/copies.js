// Commands and programs that read one message, or write it again.

import { Payload } from "../decode/payload.js";
import { toBase64 } from "../decode/bytes.js";
import { url, withQuery } from "../parts/api.js";
import { kcatOptions, pythonDict } from "./snippet-security.js";

/** [[label, make], …]; `make` gets { address, security, curlOptions } and returns text. */
export function copiesOf(topic, message) {
  const { partition, offset } = message;
  const here = location.origin;
  const read = withQuery(url`/v1/topics/${topic}/messages`, { partition, offset, limit: 1 });
  const write = url`/v1/topics/${topic}/messages`;
  return [
    ["kcat", ({ address, security }) => `kcat -b ${address}${kcatOptions(security)} -C -t ${shell(topic)} -p ${partition} -o ${offset} -c 1 -e`],
    ["curl", ({ curlOptions }) => `curl${curlOptions} ${shell(here + read)}`],
    [
      "curl that writes it again",
      ({ curlOptions }) =>
        `curl${curlOptions} -H 'Content-Type: application/json' ${shell(here + write)} -d ${shell(bodyOf(message))}`,
    ],
    ["Python", ({ address, security }) => python(address, security, topic, partition, offset)],
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

function python(address, security, topic, partition, offset) {
  const { before, more } = pythonDict(security);
  return `from confluent_kafka import Consumer, TopicPartition

${before}settings = {"group.id": "look", "enable.auto.commit": False}
consumer = Consumer({"bootstrap.servers": "${address}", **settings${more}})
consumer.assign([TopicPartition("${topic}", ${partition}, ${offset})])
message = consumer.poll(10)
print(message.key(), message.value(), message.headers())
consumer.close()
`;
}
