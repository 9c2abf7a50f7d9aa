// Kafka Streams' word count, exactly once: BOOTSTRAP STATE_DIR; it counts the words of "lines" into "counts" until it is killed.

import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.KeyValueStore;

public final class WordCount {
    public static void main(String[] arguments) {
        var builder = new StreamsBuilder();
        builder.stream("lines", Consumed.with(Serdes.String(), Serdes.String()))
            .flatMapValues(line -> List.of(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.with("words", Serdes.String(), Serdes.String()))
            .count(counted())
            .toStream()
            .mapValues(String::valueOf)
            .to("counts", Produced.with(Serdes.String(), Serdes.String()));
        var streams = new KafkaStreams(builder.build(), settings(arguments[0], arguments[1]));
        streams.setStateListener((now, before) -> System.out.println(now));
        streams.setUncaughtExceptionHandler(failed -> {
            System.err.println(failed);
            return StreamThreadExceptionResponse.REPLACE_THREAD;
        });
        streams.start();
    }

    /** Every count is written to the changelog, whose segments are soon full, and soon compacted. */
    static Materialized<String, Long, KeyValueStore<Bytes, byte[]>> counted() {
        return Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("store")
            .withCachingDisabled()
            .withLoggingEnabled(Map.of("internal.segment.bytes", "4096", "min.cleanable.dirty.ratio", "0.1"));
    }

    static Properties settings(String bootstrap, String stateDir) {
        var settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "word-count");
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, stateDir);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 50);
        settings.put(StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");
        // A killed process cannot say goodbye, and its successor should not have to wait for long.
        settings.put(StreamsConfig.consumerPrefix("session.timeout.ms"), 6000);
        settings.put(StreamsConfig.consumerPrefix("heartbeat.interval.ms"), 500);
        settings.put(StreamsConfig.consumerPrefix("max.poll.records"), 20);
        settings.put(StreamsConfig.consumerPrefix("group.instance.id"), "only");
        settings.put(StreamsConfig.producerPrefix("batch.size"), 2048);
        settings.put("reconnect.backoff.max.ms", 100);
        return settings;
    }
}
