// Share groups with Apache Kafka's own Java client; run from source: `java -cp … ShareGroups.java BOOTSTRAP TOPIC`.

import com.fasterxml.jackson.databind.ObjectMapper;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public final class ShareGroups {
    static final int RECORDS = 40;
    static final long RELEASED = 3;
    static final long REJECTED = 5;
    static final long RENEWED = 7;
    static final Instant DEADLINE = Instant.now().plusSeconds(40);

    final String bootstrap;
    final String topic;
    final String group;
    final TopicPartition partition;
    final Admin admin;
    final Map<String, Object> report = new TreeMap<>();

    ShareGroups(String bootstrap, String topic) {
        this.bootstrap = bootstrap;
        this.topic = topic;
        this.group = topic + "-group";
        this.partition = new TopicPartition(topic, 0);
        this.admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
    }

    public static void main(String[] arguments) throws Exception {
        var play = new ShareGroups(arguments[0], arguments[1]);
        try (play.admin) {
            play.prepare();
            play.consume();
            play.readDeadLetters();
            play.administer();
        }
        System.out.println(new ObjectMapper().writeValueAsString(play.report));
    }

    void prepare() throws Exception {
        admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get();
        var resource = new ConfigResource(ConfigResource.Type.GROUP, group);
        Collection<AlterConfigOp> changes = List.of(
                set("share.auto.offset.reset", "earliest"),
                set("share.partition.max.record.locks", "10"),
                set("dead.letter.topic", topic + "-dead"));
        admin.incrementalAlterConfigs(Map.of(resource, changes)).all().get();
        var described = admin.describeConfigs(List.of(resource)).all().get().get(resource);
        report.put("config", described.get("share.partition.max.record.locks").value());
        try (var producer = new KafkaProducer<String, String>(
                Map.of("bootstrap.servers", bootstrap, "batch.size", 100), new StringSerializer(), new StringSerializer())) {
            for (int n = 0; n < RECORDS; n++) {
                producer.send(new ProducerRecord<>(topic, "value-" + n));
            }
        }
    }

    static AlterConfigOp set(String name, String value) {
        return new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET);
    }

    KafkaShareConsumer<String, String> consumer() {
        Map<String, Object> settings = Map.of(
                "bootstrap.servers", bootstrap, "group.id", group, "share.acknowledgement.mode", "explicit");
        var consumer = new KafkaShareConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
        consumer.subscribe(List.of(topic));
        return consumer;
    }

    void consume() throws Exception {
        Set<Long> accepted = new TreeSet<>();
        List<Integer> deliveries = new ArrayList<>();
        List<Integer> shares = new ArrayList<>(List.of(0, 0));
        try (var first = consumer(); var second = consumer()) {
            boolean isDescribed = false;
            while (accepted.size() < RECORDS - 1 && Instant.now().isBefore(DEADLINE)) {
                int who = 0;
                for (var consumer : List.of(first, second)) {
                    for (var record : consumer.poll(Duration.ofMillis(200))) {
                        shares.set(who, shares.get(who) + 1);
                        judge(consumer, record, accepted, deliveries);
                    }
                    consumer.commitSync().values().forEach(error -> error.ifPresent(e -> {
                        throw e;
                    }));
                    who++;
                }
                if (!isDescribed && shares.get(0) > 0 && shares.get(1) > 0) {
                    isDescribed = true;
                    var described = admin.describeShareGroups(List.of(group)).all().get().get(group);
                    report.put("described", List.of(described.groupState().toString(), described.members().size()));
                }
            }
            report.put("both", shares.get(0) > 0 && shares.get(1) > 0);
        }
        report.put("accepted", accepted.size());
        report.put("deliveries", deliveries);
    }

    void judge(
            KafkaShareConsumer<String, String> consumer,
            ConsumerRecord<String, String> record,
            Set<Long> accepted,
            List<Integer> deliveries) {
        int count = record.deliveryCount().orElseThrow();
        if (record.offset() == RELEASED) {
            deliveries.add(count);
        }
        if (record.offset() == RELEASED && count == 1) {
            consumer.acknowledge(record, AcknowledgeType.RELEASE);
        } else if (record.offset() == REJECTED) {
            consumer.acknowledge(record, AcknowledgeType.REJECT);
        } else if (record.offset() == RENEWED && !report.containsKey("renewed")) {
            report.put("renewed", count);
            consumer.acknowledge(record, AcknowledgeType.RENEW);
        } else {
            consumer.acknowledge(record, AcknowledgeType.ACCEPT);
            if (!accepted.add(record.offset())) {
                throw new IllegalStateException("accepted twice: " + record.offset());
            }
        }
    }

    void readDeadLetters() {
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap, "auto.offset.reset", "earliest");
        try (var consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.assign(List.of(new TopicPartition(topic + "-dead", 0)));
            List<String> letters = new ArrayList<>();
            while (letters.isEmpty() && Instant.now().isBefore(DEADLINE)) {
                for (var record : consumer.poll(Duration.ofMillis(200))) {
                    letters.add(record.value());
                    for (Header header : record.headers()) {
                        letters.add(header.key() + "=" + new String(header.value()));
                    }
                }
            }
            report.put("letters", letters);
        }
    }

    void administer() throws Exception {
        report.put("listed", admin.listGroups().all().get().stream()
                .filter(listing -> listing.groupId().equals(group))
                .map(GroupListing::type).map(type -> type.orElseThrow().toString()).toList());
        report.put("offset", offset());
        admin.alterShareGroupOffsets(group, Map.of(partition, 10L)).all().get();
        report.put("moved", offset());
        admin.deleteShareGroupOffsets(group, Set.of(topic)).all().get();
        admin.deleteShareGroups(List.of(group)).all().get();
        report.put("left", admin.listGroups().all().get().stream()
                .filter(listing -> listing.groupId().equals(group)).count());
    }

    List<Long> offset() throws Exception {
        var found = admin.listShareGroupOffsets(Map.of(group, new ListShareGroupOffsetsSpec()))
                .partitionsToOffsetInfo(group).get().get(partition);
        return List.of(found.startOffset(), found.lag().orElse(-1L));
    }
}
