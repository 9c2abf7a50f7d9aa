// Confluent's Java client of the schema registry and its Avro serializers. Arguments: the registry's URL, the address
// of the broker, a topic to write and a topic to read. Prints a report as JSON.

import com.fasterxml.jackson.databind.ObjectMapper;
import io.confluent.kafka.schemaregistry.avro.AvroSchema;
import io.confluent.kafka.schemaregistry.avro.AvroSchemaProvider;
import io.confluent.kafka.schemaregistry.client.CachedSchemaRegistryClient;
import io.confluent.kafka.schemaregistry.client.rest.entities.Config;
import io.confluent.kafka.schemaregistry.client.rest.entities.Metadata;
import io.confluent.kafka.schemaregistry.client.rest.entities.SchemaReference;
import io.confluent.kafka.schemaregistry.client.rest.exceptions.RestClientException;
import io.confluent.kafka.serializers.KafkaAvroDeserializer;
import io.confluent.kafka.serializers.KafkaAvroSerializer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericRecord;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

public class Registry {
    private static final String FIRST =
        "{\"type\":\"record\",\"name\":\"Order\",\"namespace\":\"shop\",\"fields\":[{\"name\":\"id\",\"type\":\"long\"}]}";
    private static final String SECOND =
        "{\"type\":\"record\",\"name\":\"Order\",\"namespace\":\"shop\",\"fields\":[{\"name\":\"id\",\"type\":\"long\"},"
            + "{\"name\":\"note\",\"type\":[\"null\",\"string\"],\"default\":null}]}";
    private static final String THIRD =
        "{\"type\":\"record\",\"name\":\"Order\",\"namespace\":\"shop\",\"fields\":[{\"name\":\"id\",\"type\":\"string\"}]}";
    private static final String BASKET =
        "{\"type\":\"record\",\"name\":\"Basket\",\"namespace\":\"shop\",\"fields\":[{\"name\":\"order\",\"type\":\"Order\"}]}";

    private interface Call {
        void run() throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, Object> report = new TreeMap<>();
        try (CachedSchemaRegistryClient client = client(arguments[0])) {
            administer(client, "java-value", report);
            metadata(client, "java-metadata", report);
        }
        write(arguments[0], arguments[1], arguments[2]);
        report.put("read", read(arguments[0], arguments[1], arguments[3]));
        System.out.println(new ObjectMapper().writeValueAsString(report));
    }

    private static CachedSchemaRegistryClient client(String url) {
        return new CachedSchemaRegistryClient(List.of(url), 100, List.of(new AvroSchemaProvider()), Map.of(), Map.of());
    }

    private static void administer(CachedSchemaRegistryClient client, String subject, Map<String, Object> report)
        throws Exception {
        AvroSchema first = new AvroSchema(FIRST);
        AvroSchema second = new AvroSchema(SECOND);
        AvroSchema third = new AvroSchema(THIRD);
        int id = client.register(subject, first);
        int later = client.register(subject, second);
        client.reset();
        report.put("same_id", client.register(subject, first) == id && client.getId(subject, second) == later);
        report.put("versions", client.getAllVersions(subject));
        report.put("version", client.getVersion(subject, second));
        report.put("latest", client.getLatestSchemaMetadata(subject).getSchema().equals(second.canonicalString()));
        report.put("by_id", client.getSchemaById(id).equals(first));
        report.put("subjects_of_id", client.getAllSubjectsById(id));
        report.put("is_listed", client.getAllSubjectsByPrefix("java-").contains(subject));
        report.put("is_compatible", client.testCompatibility(subject, third));
        report.put("has_reasons", !client.testCompatibilityVerbose(subject, third).isEmpty());
        report.put("refused", codeOf(() -> client.register(subject, third)));
        report.put("missing", codeOf(() -> client.getSchemaMetadata(subject, 9)));
        report.put("unknown", codeOf(() -> client.getSchemaById(4711)));

        List<SchemaReference> references = List.of(new SchemaReference("shop.Order", subject, 1));
        AvroSchema basket = new AvroSchema(BASKET, references, Map.of("shop.Order", FIRST), null);
        int user = client.register(subject + "-basket", basket);
        client.reset();
        report.put("resolved", client.getSchemaById(user).rawSchema().toString().contains("\"long\""));
        report.put("is_referenced", codeOf(() -> {
            client.deleteSchemaVersion(subject, "1");
            client.deleteSchemaVersion(subject, "1", true);
        }));

        report.put("level", client.updateCompatibility(subject, "FULL") + " " + client.getCompatibility(subject));
        report.put("mode", client.setMode("READONLY", subject) + " " + client.getMode(subject));
        report.put("read_only", codeOf(() -> client.register(subject, new AvroSchema("\"long\""))));
        client.deleteMode(subject);
        report.put("imported", imported(client));
        report.put("contexts", client.getAllContexts());
        report.put("deleted", client.deleteSubject(subject + "-basket"));
        report.put("purged", client.deleteSubject(subject + "-basket", true));
    }

    private static int imported(CachedSchemaRegistryClient client) throws Exception {
        client.setMode("IMPORT", ":.copies:", true);
        return client.register(":.copies:java-value", new AvroSchema(FIRST), 3, 777);
    }

    private static void metadata(CachedSchemaRegistryClient client, String subject, Map<String, Object> report)
        throws Exception {
        Metadata given = new Metadata(Map.of("shop.Order.id", new TreeSet<>(List.of("PII"))), Map.of("owner", "ann"), null);
        Config config = new Config();
        config.setCompatibilityLevel("BACKWARD");
        config.setDefaultMetadata(new Metadata(null, Map.of("team", "shop"), null));
        client.updateConfig(subject, config);
        client.register(subject, new AvroSchema(FIRST).copy(given, null));
        client.reset();
        Metadata found = client.getLatestWithMetadata(subject, Map.of("owner", "ann"), false).getMetadata();
        report.put("metadata", found.getProperties() + " " + found.getTags());
    }

    private static Integer codeOf(Call call) throws Exception {
        try {
            call.run();
        } catch (RestClientException refused) {
            return refused.getErrorCode();
        }
        return null;
    }

    private static void write(String url, String bootstrap, String topic) throws Exception {
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", bootstrap);
        config.put("schema.registry.url", url);
        Schema schema = new Schema.Parser().parse(SECOND);
        KafkaAvroSerializer keys = new KafkaAvroSerializer();
        KafkaAvroSerializer values = new KafkaAvroSerializer();
        keys.configure(config, true);
        values.configure(config, false);
        try (KafkaProducer<Object, Object> producer = new KafkaProducer<>(config, keys, values)) {
            for (long id = 0; id < 3; id++) {
                GenericRecord order = new GenericData.Record(schema);
                order.put("id", id);
                order.put("note", id == 0 ? null : "note " + id);
                producer.send(new ProducerRecord<>(topic, "key " + id, order)).get();
            }
        }
    }

    private static List<String> read(String url, String bootstrap, String topic) {
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", bootstrap);
        config.put("schema.registry.url", url);
        config.put("group.id", "java-registry");
        config.put("auto.offset.reset", "earliest");
        config.put("key.deserializer", KafkaAvroDeserializer.class.getName());
        config.put("value.deserializer", KafkaAvroDeserializer.class.getName());
        List<String> found = new ArrayList<>();
        try (KafkaConsumer<Object, Object> consumer = new KafkaConsumer<>(config)) {
            consumer.subscribe(List.of(topic));
            long end = System.nanoTime() + Duration.ofSeconds(30).toNanos();
            while (found.size() < 3 && System.nanoTime() < end) {
                for (ConsumerRecord<Object, Object> each : consumer.poll(Duration.ofMillis(200))) {
                    found.add(each.key() + " " + each.value());
                }
            }
        }
        return found;
    }
}
