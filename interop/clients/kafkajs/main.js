// The scenario of ../README.md with kafkajs. It has gzip itself and takes the other codecs as plug-ins.
"use strict";
const kafkajs = require("kafkajs");
const lz4 = require("lz4js");
const xxh32 = require("lz4js/xxh32.js");
const { ZstdCodec } = require("zstd-codec");

const { CompressionCodecs, CompressionTypes, ConfigResourceTypes, Kafka, logLevel } = kafkajs;
const RECORDS = 100;
const PARTITIONS = 5;
const DEADLINE_MS = 50_000;
const [bootstrap, topic, base] = process.argv.slice(2);
const groupId = `${topic}-group`;
const kafka = new Kafka({ clientId: "interop", brokers: [bootstrap], logLevel: logLevel.ERROR });
const admin = kafka.admin();
const report = {};

async function main() {
  await addCodecs();
  await admin.connect();
  await createTopic();
  const consumed = {};
  const first = await join(consumed);
  const second = await join(consumed);
  await until(() => first.owned + second.owned === PARTITIONS && first.owned > 0 && second.owned > 0);
  report.assigned = [first.owned, second.owned].sort();
  await produce();
  await until(() => Object.values(consumed).flat().length >= PARTITIONS * RECORDS);
  report.consumed = consumed;
  await leave(first, second);
  await offsets();
  await clean();
  await admin.disconnect();
  console.log(JSON.stringify(report));
}

async function addCodecs() {
  const zstd = await new Promise((done) => ZstdCodec.run((z) => done(new z.Simple())));
  const codec = (compress, decompress) => () => ({
    compress: async (encoder) => Buffer.from(compress(encoder.buffer)),
    decompress: async (buffer) => Buffer.from(decompress(buffer)),
  });
  CompressionCodecs[CompressionTypes.Snappy] = require("kafkajs-snappy");
  CompressionCodecs[CompressionTypes.LZ4] = codec((b) => withIndependentBlocks(lz4.compress(b)), lz4.decompress);
  CompressionCodecs[CompressionTypes.ZSTD] = codec((b) => zstd.compress(b), (b) => zstd.decompress(b));
}

// lz4js writes one block and yet does not say that it depends on no other, which Kafka's consumers insist on.
function withIndependentBlocks(frame) {
  frame[4] |= 0x20;
  frame[6] = (xxh32.hash(0, frame, 4, 2) >> 8) & 0xff;
  return frame;
}

async function createTopic() {
  const configEntries = [{ name: "retention.ms", value: "86400000" }];
  await admin.createTopics({ topics: [{ topic, numPartitions: 2, replicationFactor: 1, configEntries }] });
  report.created = await described();
  await admin.createPartitions({ topicPartitions: [{ topic, count: PARTITIONS }] });
  const shorter = [{ name: "retention.ms", value: "3600000" }];
  await admin.alterConfigs({ resources: [{ type: ConfigResourceTypes.TOPIC, name: topic, configEntries: shorter }] });
  report.altered = await described();
}

async function described() {
  const { topics } = await admin.fetchTopicMetadata({ topics: [topic] });
  const asked = { type: ConfigResourceTypes.TOPIC, name: topic, configNames: ["retention.ms"] };
  const { resources } = await admin.describeConfigs({ resources: [asked], includeSynonyms: false });
  return [topics[0].partitions.length, resources[0].configEntries[0].configValue];
}

async function join(consumed) {
  const consumer = kafka.consumer({ groupId, heartbeatInterval: 200, maxWaitTimeInMs: 100, rebalanceTimeout: 10_000 });
  const member = { consumer, owned: 0 };
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    member.owned = (payload.memberAssignment[topic] ?? []).length;
  });
  consumer.on(consumer.events.REBALANCING, () => { member.owned = 0; });
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  await consumer.run({
    eachMessage: async ({ partition, message }) => { (consumed[partition] ??= []).push(line(message)); },
  });
  return member;
}

function line({ offset, key, value, headers, timestamp }) {
  return `${offset} ${key} ${value === null ? "~" : value} ${headers.n} ${timestamp}`;
}

async function produce() {
  report.produced = {};
  const producer = kafka.producer({
    idempotent: true, maxInFlightRequests: 1, createPartitioner: kafkajs.Partitioners.DefaultPartitioner,
  });
  await producer.connect();
  for (let partition = 0; partition < PARTITIONS; partition++) {
    const messages = Array.from({ length: RECORDS }, (_, n) => ({
      partition,
      key: `key-${n}`,
      value: n % 10 === 9 ? null : `${partition}-${n}`,
      headers: { n: `${n}` },
      timestamp: `${BigInt(base) + BigInt(n)}`,
    }));
    const [sent] = await producer.send({ topic, acks: -1, compression: partition, messages });
    const first = Number(sent.baseOffset);
    report.produced[sent.partition] = [first, first + RECORDS - 1];
  }
  await producer.disconnect();
}

async function leave(first, second) {
  const { groups } = await admin.describeGroups([groupId]);
  report.group = [groups[0].state, groups[0].members.length];
  await second.consumer.disconnect();
  await until(() => first.owned === PARTITIONS);
  report.after_leave = first.owned;
  await first.consumer.disconnect();
}

async function offsets() {
  const [{ partitions }] = await admin.fetchOffsets({ groupId, topics: [topic] });
  report.committed = byPartition(partitions, "offset");
  const edges = await admin.fetchTopicOffsets(topic);
  report.earliest = byPartition(edges, "low");
  report.latest = byPartition(edges, "high");
  report.at = byPartition(await admin.fetchTopicOffsetsByTimestamp(topic, Number(base) + 50), "offset");
}

function byPartition(entries, field) {
  return Object.fromEntries(entries.map((entry) => [entry.partition, Number(entry[field])]));
}

async function clean() {
  await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: "30" }] });
  report.low_watermark = byPartition(await admin.fetchTopicOffsets(topic), "low")[0];
  await admin.createTopics({ topics: [{ topic: `${topic}-gone`, numPartitions: 1, replicationFactor: 1 }] });
  await admin.deleteTopics({ topics: [`${topic}-gone`] });
  await admin.deleteGroups([groupId]);
  report.topics = (await admin.listTopics()).filter((name) => name.includes(topic)).sort();
  const { groups } = await admin.listGroups();
  report.groups = groups.map((group) => group.groupId).filter((name) => name.includes(topic)).sort();
}

async function until(is) {
  while (!is()) await new Promise((done) => setTimeout(done, 10));
}

setTimeout(() => {
  console.error("not done in time; so far:", JSON.stringify(report));
  process.exit(1);
}, DEADLINE_MS).unref();
main().catch((error) => {
  console.error(error);
  process.exit(1);
});
