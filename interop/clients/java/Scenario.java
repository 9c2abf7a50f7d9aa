// The scenario of ../README.md with Apache Kafka's own Java client; run from source: `java -cp … Scenario.java`.

import com.fasterxml.jackson.databind.ObjectMapper;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Future;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public final class Scenario {
    static final int RECORDS = 100;
    static final List<String> CODECS = List.of("none", "gzip", "snappy", "lz4", "zstd");
    static final Instant DEADLINE = Instant.now().plusSeconds(50);

    final String bootstrap;
    final String topic;
    final String group;
    final long base;
    final Admin admin;
    final List<TopicPartition> partitions;
    final Map<String, Object> report = new TreeMap<>();
    final Map<String, List<String>> consumed = new TreeMap<>();

    Scenario(String bootstrap, String topic, long base) {
        this.bootstrap = bootstrap;
        this.topic = topic;
        this.group = topic + "-group";
        this.base = base;
        this.admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
        this.partitions = IntStream.range(0, CODECS.size()).mapToObj(p -> new TopicPartition(topic, p)).toList();
    }

    public static void main(String[] arguments) throws Exception {
        var scenario = new Scenario(arguments[0], arguments[1], Long.parseLong(arguments[2]));
        try (scenario.admin) {
            scenario.play();
        }
        System.out.println(new ObjectMapper().writeValueAsString(scenario.report));
    }

    void play() throws Exception {
        createTopic();
        try (var first = join()) {
            try (var second = join()) {
                consume(first, second);
            }
            poll(() -> first.assignment().size() == partitions.size(), first);
            report.put("after_leave", first.assignment().size());
        }
        offsets();
        clean();
    }

    void createTopic() throws Exception {
        var created = new NewTopic(topic, 2, (short) 1).configs(Map.of("retention.ms", "86400000"));
        admin.createTopics(List.of(created)).all().get();
        report.put("created", described());
        admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(partitions.size()))).all().get();
        var shorter = new AlterConfigOp(new ConfigEntry("retention.ms", "3600000"), AlterConfigOp.OpType.SET);
        admin.incrementalAlterConfigs(Map.of(resource(), List.of(shorter))).all().get();
        report.put("altered", described());
    }

    List<Object> described() throws Exception {
        var count = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size();
        var configs = admin.describeConfigs(List.of(resource())).all().get().get(resource());
        return List.of(count, configs.get("retention.ms").value());
    }

    ConfigResource resource() {
        return new ConfigResource(ConfigResource.Type.TOPIC, topic);
    }

    KafkaConsumer<String, String> join() {
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", bootstrap,
            "group.id", group,
            "auto.offset.reset", "earliest",
            "enable.auto.commit", "false",
            "heartbeat.interval.ms", "200",
            "partition.assignment.strategy", "org.apache.kafka.clients.consumer.RoundRobinAssignor");
        var consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
        consumer.subscribe(List.of(topic));
        return consumer;
    }

    void consume(KafkaConsumer<String, String> first, KafkaConsumer<String, String> second) throws Exception {
        poll(() -> first.assignment().size() + second.assignment().size() == partitions.size()
            && !first.assignment().isEmpty() && !second.assignment().isEmpty(), first, second);
        report.put("assigned", Stream.of(first, second).map(c -> c.assignment().size()).sorted().toList());
        produce();
        poll(() -> consumed.values().stream().mapToInt(List::size).sum() >= partitions.size() * RECORDS, first, second);
        report.put("consumed", consumed);
        var description = admin.describeConsumerGroups(List.of(group)).all().get().get(group);
        report.put("group", List.of(description.groupState().toString(), description.members().size()));
        first.commitSync();
        second.commitSync();
    }

    @SafeVarargs
    final void poll(BooleanSupplier isDone, KafkaConsumer<String, String>... members) {
        while (!isDone.getAsBoolean()) {
            if (Instant.now().isAfter(DEADLINE)) {
                throw new IllegalStateException("not done in time; so far: " + report);
            }
            for (var member : members) {
                for (var polled : member.poll(Duration.ofMillis(20))) {
                    consumed.computeIfAbsent(String.valueOf(polled.partition()), p -> new ArrayList<>()).add(line(polled));
                }
            }
        }
    }

    static String line(ConsumerRecord<String, String> polled) {
        var value = polled.value() == null ? "~" : polled.value();
        var header = new String(polled.headers().lastHeader("n").value());
        return polled.offset() + " " + polled.key() + " " + value + " " + header + " " + polled.timestamp();
    }

    void produce() throws Exception {
        Map<String, List<Long>> produced = new TreeMap<>();
        for (var to : partitions) {
            Map<String, Object> settings = Map.of(
                "bootstrap.servers", bootstrap,
                "compression.type", CODECS.get(to.partition()),
                "linger.ms", "5");
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
                for (var n = 0; n < RECORDS; n++) {
                    var value = n % 10 == 9 ? null : to.partition() + "-" + n;
                    var made = new ProducerRecord<>(topic, to.partition(), base + n, "key-" + n, value);
                    made.headers().add(new RecordHeader("n", String.valueOf(n).getBytes()));
                    sent.add(producer.send(made));
                }
            }
            var ends = List.of(sent.get(0).get().offset(), sent.get(RECORDS - 1).get().offset());
            produced.put(String.valueOf(to.partition()), ends);
        }
        report.put("produced", produced);
    }

    void offsets() throws Exception {
        Map<String, Long> committed = new TreeMap<>();
        admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get()
            .forEach((at, offset) -> committed.put(String.valueOf(at.partition()), offset.offset()));
        report.put("committed", committed);
        report.put("earliest", listed(OffsetSpec.earliest()));
        report.put("latest", listed(OffsetSpec.latest()));
        report.put("at", listed(OffsetSpec.forTimestamp(base + 50)));
    }

    Map<String, Long> listed(OffsetSpec spec) throws Exception {
        Map<String, Long> found = new TreeMap<>();
        admin.listOffsets(partitions.stream().collect(Collectors.toMap(p -> p, p -> spec))).all().get()
            .forEach((at, offset) -> found.put(String.valueOf(at.partition()), offset.offset()));
        return found;
    }

    void clean() throws Exception {
        var first = partitions.get(0);
        var deleted = admin.deleteRecords(Map.of(first, RecordsToDelete.beforeOffset(30)));
        report.put("low_watermark", deleted.lowWatermarks().get(first).get().lowWatermark());
        admin.createTopics(List.of(new NewTopic(topic + "-gone", 1, (short) 1))).all().get();
        admin.deleteTopics(List.of(topic + "-gone")).all().get();
        admin.deleteConsumerGroups(List.of(group)).all().get();
        report.put("topics", ours(admin.listTopics().names().get()));
        var groups = admin.listGroups().all().get().stream().map(GroupListing::groupId).collect(Collectors.toSet());
        report.put("groups", ours(groups));
    }

    List<String> ours(Collection<String> names) {
        return names.stream().filter(name -> name.contains(topic)).sorted().toList();
    }
}
