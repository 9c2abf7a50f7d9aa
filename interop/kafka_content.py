"""Fills a real broker with every kind of content that a log can hold."""

import re
from collections.abc import Callable, Mapping

from confluent_kafka import Consumer, TopicPartition

from interop.kafka_broker import KafkaBroker
from interop.kafka_clients import QUIET, TIMEOUT_S, Admin, Headers, Sender

START_MS = 1_700_000_000_000
MIB = 1 << 20
CENTURY_MS = "3155760000000"
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

SMALL_SEGMENTS = {
    # Kafka has a lower limit of 1 MiB for `segment.bytes`; this is what its own tests use.
    "internal.segment.bytes": "16384",
    "index.interval.bytes": "512",
    # The timestamps here are of another year.
    "retention.ms": "-1",
    "message.timestamp.after.max.ms": str((1 << 63) - 1),
}
BROKER_PROPERTIES = {
    # So that deleted records leave segments behind to be deleted, and soon.
    "log.initial.task.delay.ms": "0",
    "log.retention.check.interval.ms": "100",
    # Index files are made this large in advance, and stay so when the broker is killed.
    "log.index.size.max.bytes": "65536",
}

# Names with the characters that separate things elsewhere.
KINDS = "kinds.of_record-1"
COMPRESSED = "compressed-by-client"
RECOMPRESSED = "compressed-by-broker-"
TRANSACTIONS = "transactions"


def fill(broker: KafkaBroker) -> None:
    admin = Admin(broker.bootstrap)
    for write in WRITERS:
        write(broker, admin)


def write_kinds(broker: KafkaBroker, admin: Admin) -> None:
    """Null, empty and plain keys and values, with and without headers; in one batch, then one each."""
    headers: tuple[Headers, ...] = (
        (),
        (("trace", b"1"),),
        (("trace", b"1"), ("trace", b"2"), ("none", None), ("empty", b""), ("größe", b"\x00\xff")),
    )
    admin.create(KINDS, 2, SMALL_SEGMENTS)
    sender = Sender(broker.bootstrap)
    for partition in (0, 1):
        timestamp = START_MS
        for key in (None, b"", b"key", bytes(range(256))):
            for value in (None, b"", b"value", b"line\nfeed\r\n\x00\xff"):
                for some in headers:
                    sender.send(KINDS, value, key=key, timestamp=timestamp, partition=partition, headers=some)
                    timestamp += 7
                    if partition == 1:
                        sender.flush()
        sender.flush()


def write_compressed_by_the_client(broker: KafkaBroker, admin: Admin) -> None:
    admin.create(COMPRESSED, len(CODECS), SMALL_SEGMENTS)
    for partition, codec in enumerate(CODECS):
        sender = Sender(broker.bootstrap, {"compression.type": codec, "enable.idempotence": codec == "lz4"})
        _send_text(sender, COMPRESSED, partition, batches=40)


def write_compressed_by_the_broker(broker: KafkaBroker, admin: Admin) -> None:
    """Compressed by Java's libraries, whose snappy and lz4 streams differ from those of the client in C."""
    for codec in CODECS[1:]:
        admin.create(RECOMPRESSED + codec, 1, {**SMALL_SEGMENTS, "compression.type": codec})
        _send_text(Sender(broker.bootstrap), RECOMPRESSED + codec, 0, batches=40)


def write_transactions(broker: KafkaBroker, admin: Admin) -> None:
    """Committed, aborted, interleaved, over several segments, and one left open when the broker stops."""
    admin.create(TRANSACTIONS, 2, SMALL_SEGMENTS)
    one, other = (_transactional(broker, f"tx-{name}") for name in ("one", "other"))
    plain = Sender(broker.bootstrap)
    for turn in range(12):
        one.producer.begin_transaction()
        other.producer.begin_transaction()
        for step in range(3):
            timestamp = START_MS + turn * 100 + step
            for sender in (one, plain, other):
                for partition in (0, 1):
                    value = b"turn %d step %d " % (turn, step) + b"x" * 400
                    sender.send(TRANSACTIONS, value, key=b"k", timestamp=timestamp, partition=partition)
                sender.flush()
        _end(one, is_commit=turn % 2 == 0)
        _end(other, is_commit=turn % 3 == 0)
    left_open = _transactional(broker, "tx-open")
    left_open.producer.begin_transaction()
    left_open.send(TRANSACTIONS, b"never decided", timestamp=START_MS + 5000)
    left_open.flush()
    plain.send(TRANSACTIONS, b"after the open one", timestamp=START_MS + 5001)
    plain.flush()


def write_append_time(broker: KafkaBroker, admin: Admin) -> None:
    config = {**SMALL_SEGMENTS, "message.timestamp.type": "LogAppendTime"}
    admin.create("append-time", 2, config)
    for partition, codec in enumerate(("none", "zstd")):
        sender = Sender(broker.bootstrap, {"compression.type": codec})
        _send_text(sender, "append-time", partition, batches=40)


def write_timestamps(broker: KafkaBroker, admin: Admin) -> None:
    """Out of order within a batch and between batches, before 1970, none at all, and far in the future."""
    admin.create("timestamps", 1, {**SMALL_SEGMENTS, "segment.ms": CENTURY_MS})
    sender = Sender(broker.bootstrap)
    for turn in range(60):
        for step in (3, 1, 2, 0):
            wave = START_MS + (turn * 7919 % 60) * 1000 + step
            sender.send("timestamps", b"wave" * 60, timestamp=wave)
        sender.flush()
    for timestamp in (-1, -2, -START_MS, 1, START_MS * 2, START_MS):
        sender.send("timestamps", b"%d" % timestamp, timestamp=timestamp)
        sender.flush()
    for timestamp in (-5, -1, START_MS, -START_MS, 1):
        sender.send("timestamps", b"together %d" % timestamp, timestamp=timestamp)
    sender.flush()


def write_compacted(broker: KafkaBroker, admin: Admin) -> None:
    """Offset gaps, tombstones with a delete horizon, a batch kept empty for its producer's last sequence."""
    topic = "compacted"
    config = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": CENTURY_MS}
    admin.create(topic, 1, {**SMALL_SEGMENTS, **config})
    forgotten = Sender(broker.bootstrap, {"enable.idempotence": True})
    for number in range(5):
        forgotten.send(topic, b"superseded", key=b"key-%d" % number, timestamp=START_MS)
    forgotten.flush()
    aborting = _transactional(broker, "tx-compacted")
    aborting.producer.begin_transaction()
    aborting.send(topic, b"aborted", key=b"aborted", timestamp=START_MS)
    aborting.flush()
    _end(aborting, is_commit=False)
    sender = Sender(broker.bootstrap)
    for turn in range(100):
        for number in range(turn % 7, 40, 7):
            is_short_lived = number % 5 == 0
            if is_short_lived and turn > 46:
                continue
            value = None if is_short_lived and turn > 39 else b"turn %d " % turn + b"v" * 60
            sender.send(topic, value, key=b"key-%d" % number, timestamp=START_MS + turn)
        sender.flush()
    active = max(int(file.stem) for file in (broker.log_dir / f"{topic}-0").glob("*.log"))
    broker.wait_for_report(lambda line: _cleaned_up_to(line, f"{topic}-0") >= active)


def write_deleted_records(broker: KafkaBroker, admin: Admin) -> None:
    """A log start inside the first segment, one at which segments were deleted, and one at the very end."""
    topic = "deleted-records"
    admin.create(topic, 3, SMALL_SEGMENTS)
    sender = Sender(broker.bootstrap)
    for partition in range(3):
        _send_text(sender, topic, partition, batches=40)
    log = broker.log_dir / f"{topic}-1"
    bases = sorted(int(file.stem) for file in log.glob("*.log"))
    admin.delete_records(topic, 0, 3)
    admin.delete_records(topic, 1, bases[2] + 3)
    broker.wait_for_report(lambda line: f"due to log start offset {bases[2] + 3} breach" in line)
    admin.delete_records(topic, 2, -1)
    broker.wait_for_report(lambda line: f"partition={topic}-2" in line and "breach" in line)


def write_large(broker: KafkaBroker, admin: Admin) -> None:
    admin.create("large", 2, {"retention.ms": "-1", "max.message.bytes": str(4 * MIB)})
    for partition, codec in enumerate(("none", "snappy")):
        sender = Sender(broker.bootstrap, {"compression.type": codec})
        for number in range(3):
            value = bytes([number]) * (MIB // 2) + bytes(range(256)) * (MIB // 512)
            sender.send("large", value, timestamp=START_MS + number, partition=partition)
            sender.flush()


def write_nothing(_broker: KafkaBroker, admin: Admin) -> None:
    admin.create("empty", 1, SMALL_SEGMENTS)


def write_commits(broker: KafkaBroker, _admin: Admin) -> None:
    """So that __consumer_offsets exists."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "some-group", **QUIET})
    for offset in (1, 2, 3):
        places = [TopicPartition(KINDS, partition, offset + partition) for partition in (0, 1)]
        consumer.commit(offsets=places, asynchronous=False)
    consumer.close()


def delete_a_topic(broker: KafkaBroker, admin: Admin) -> None:
    """Its folder stays for a minute, under another name."""
    admin.create("given-up", 1, SMALL_SEGMENTS)
    _send_text(Sender(broker.bootstrap), "given-up", 0, batches=2)
    admin.delete("given-up")
    broker.wait_for_report(lambda line: "given-up-0 is renamed" in line)


WRITERS: tuple[Callable[[KafkaBroker, Admin], None], ...] = (
    write_kinds,
    write_compressed_by_the_client,
    write_compressed_by_the_broker,
    write_transactions,
    write_append_time,
    write_timestamps,
    write_compacted,
    write_deleted_records,
    write_large,
    write_nothing,
    write_commits,
    delete_a_topic,
)


def _send_text(sender: Sender, topic: str, partition: int, *, batches: int) -> None:
    for number in range(batches):
        for step in range(20):
            sender.send(
                topic,
                b"%d.%d " % (number, step) + b"text to be compressed, " * (number % 5),
                key=b"key-%d" % step,
                timestamp=START_MS + number * 1000 + step,
                partition=partition,
                headers=(("step", b"%d" % step),) if step % 3 == 0 else (),
            )
        sender.flush()


def _transactional(broker: KafkaBroker, name: str) -> Sender:
    # As long as a broker allows, so that the open one is not aborted by the clock.
    settings: Mapping[str, str | int] = {"transactional.id": name, "transaction.timeout.ms": 900_000}
    sender = Sender(broker.bootstrap, settings)
    sender.producer.init_transactions(TIMEOUT_S)
    return sender


def _end(sender: Sender, *, is_commit: bool) -> None:
    if is_commit:
        sender.producer.commit_transaction(TIMEOUT_S)
    else:
        sender.producer.abort_transaction(TIMEOUT_S)


def _cleaned_up_to(line: str, name: str) -> int:
    found = re.search(rf"cleaned log {re.escape(name)} \(dirty section = \[\d+, (\d+)\]\)", line)
    return int(found[1]) if found else -1


def append_more(broker: KafkaBroker) -> None:
    """For a broker that will be killed: new records in segments that a clean stop had closed."""
    _send_text(Sender(broker.bootstrap), COMPRESSED, 0, batches=5)
    _send_text(Sender(broker.bootstrap, {"enable.idempotence": True}), COMPRESSED, 1, batches=60)
    sender = _transactional(broker, "tx-killed")
    sender.producer.begin_transaction()
    sender.send(KINDS, b"aborted", timestamp=START_MS)
    sender.flush()
    _end(sender, is_commit=False)
