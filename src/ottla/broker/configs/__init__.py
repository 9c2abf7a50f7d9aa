"""Topic and broker configs as Kafka's admin APIs see them: pure functions, no I/O.

    definition, rules, tables/   the configs; `definitions` has all of them by name
    values                       text to value and back
    topic_config                 the effective settings of a topic
    layers                       `BrokerConfigs`: the broker's settings, and those that topics inherit
    static                       the settings at the start, under Kafka's names
    describe, replies            DescribeConfigs, and the configs in a CreateTopics answer
    alter                        IncrementalAlterConfigs, AlterConfigs, and the configs in a CreateTopics request

Where this differs from Apache Kafka 4.3 on purpose:

- flush.ms is 1000 by default, because Ottla flushes in the background; Kafka leaves it to the operating system.
  flush.messages with any limit means that records are on the disk before they are acknowledged.
- Broker configs have the defaults of this broker: groups do not wait before their first rebalance, internal topics
  have one partition and one replica, connections have a limit, and configs that Kafka requires have a default.
  A config set to its default counts as not set.
- Values are stored normalised, so list items can be subtracted regardless of their spacing, and lists have no
  duplicates. Numbers are ASCII digits; NaN, hexadecimal and suffixed decimals are rejected.
- internal.segment.bytes must be at least 1024; Kafka accepts anything.
- A broker config that does not exist is rejected, with a suggestion; Kafka stores it.
- Fewer broker configs are dynamic: the topic defaults, producer.id.expiration.ms and the replication rates.
  min.insync.replicas can be set for one broker.
- Compaction lags that contradict each other are rejected for brokers too; Kafka accepts them, and then rejects every
  new topic.
- An unknown operation is an INVALID_REQUEST; Kafka answers UNKNOWN_SERVER_ERROR.
- A value that is already stored is not checked again when another one is changed.
"""
