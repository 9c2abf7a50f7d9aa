// The loop of ../README.md with Apache Kafka's own Java client: BOOTSTRAP SOURCE TARGET COUNT.

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public final class ExactlyOnce {
    final String bootstrap;
    final String source;
    final String target;
    final KafkaConsumer<String, String> consumer;
    KafkaProducer<String, String> producer;

    ExactlyOnce(String bootstrap, String source, String target) {
        this.bootstrap = bootstrap;
        this.source = source;
        this.target = target;
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", bootstrap,
            "group.id", target + "-group",
            "auto.offset.reset", "earliest",
            "enable.auto.commit", "false",
            "isolation.level", "read_committed",
            "reconnect.backoff.max.ms", "100",
            "max.poll.records", "20");
        this.consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
        this.producer = newProducer();
    }

    public static void main(String[] arguments) {
        var loop = new ExactlyOnce(arguments[0], arguments[1], arguments[2]);
        loop.run(Long.parseLong(arguments[3]));
        loop.consumer.close();
        loop.replace();
    }

    KafkaProducer<String, String> newProducer() {
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", bootstrap, "transactional.id", target, "reconnect.backoff.max.ms", "100");
        var made = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
        made.initTransactions();
        return made;
    }

    void run(long count) {
        consumer.subscribe(List.of(source));
        for (var number = 1; progress() < count; number++) {
            var polled = consumer.poll(Duration.ofMillis(100));
            try {
                if (!polled.isEmpty()) {
                    transform(polled, number % 3 == 0);
                }
            } catch (KafkaException failed) {
                System.err.println(failed);
                recover();
            }
        }
    }

    void transform(ConsumerRecords<String, String> polled, boolean isAborted) {
        Map<TopicPartition, OffsetAndMetadata> next = new HashMap<>();
        producer.beginTransaction();
        for (var each : polled) {
            var value = isAborted ? "aborted" : "made of " + each.value();
            producer.send(new ProducerRecord<>(target, each.partition(), each.key(), value));
            next.put(new TopicPartition(source, each.partition()), new OffsetAndMetadata(each.offset() + 1));
        }
        producer.sendOffsetsToTransaction(next, consumer.groupMetadata());
        producer.flush();
        System.out.println("sent");
        if (isAborted) {
            producer.abortTransaction();
            rewind();
        } else {
            producer.commitTransaction();
        }
    }

    void recover() {
        try {
            producer.abortTransaction();
        } catch (KafkaException failed) {
            System.err.println(failed);
            producer.close(Duration.ZERO);
            producer = newProducer();
        }
        rewind();
    }

    void rewind() {
        var committed = consumer.committed(consumer.assignment());
        for (var at : consumer.assignment()) {
            consumer.seek(at, committed.get(at) == null ? 0 : committed.get(at).offset());
        }
    }

    long progress() {
        return consumer.committed(consumer.assignment()).values().stream()
            .mapToLong(each -> each == null ? 0 : each.offset()).sum();
    }

    /** Another producer takes over the name, and what the one before it does comes to nothing. */
    void replace() {
        producer.beginTransaction();
        producer.send(new ProducerRecord<>(target, 0, "zombie", "zombie"));
        producer.flush();
        try (var successor = newProducer()) {
            successor.beginTransaction();
            successor.send(new ProducerRecord<>(target, 0, "last", "last"));
            try {
                producer.send(new ProducerRecord<>(target, 0, "zombie", "zombie again"));
                producer.commitTransaction();
                System.out.println("not fenced");
            } catch (ProducerFencedException | InvalidProducerEpochException fenced) {
                System.out.println("fenced");
            }
            successor.commitTransaction();
        }
        producer.close(Duration.ZERO);
    }
}
