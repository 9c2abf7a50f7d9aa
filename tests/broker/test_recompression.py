"""compression.type: batches are stored in the topic's compression whatever producers send; nothing else changes."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

import cramjam
import pytest
from tests.records.making import GZIP, LZ4, NONE, SNAPPY, ZSTD, record
from tests.records.making import batch as any_batch

from ottla.core.errors import ErrorCode
from ottla.records.batch import read_header
from ottla.records.encode import BatchBuilder
from ottla.records.reader import RecordReader

from .making import batch, create_topic, fetch, send_batch, set_topic_config, values_in

if TYPE_CHECKING:
    from .raw_client import RawClient

CODECS = {"uncompressed": NONE, "gzip": GZIP, "snappy": SNAPPY, "lz4": LZ4, "zstd": ZSTD}
NOW_MS = time.time_ns() // 1_000_000
VALUES = [b"value %d" % number * 20 for number in range(100)]


def create(client: RawClient, name: str, **configs: str) -> None:
    create_topic(client, name, configs={key.replace("_", "."): value for key, value in configs.items()})


def stored(client: RawClient, topic: str) -> bytes:
    data = fetch(client, topic)
    assert data.error_code == ErrorCode.NONE
    return bytes(data.records or b"")


@pytest.mark.parametrize("sent", range(5))
@pytest.mark.parametrize("compression_type", CODECS)
def test_only_the_compression_of_a_batch_changes(
    client: RawClient, name: str, compression_type: str, sent: int
) -> None:
    builder = BatchBuilder(sent)
    for number, value in enumerate(VALUES):
        builder.append(NOW_MS + number, b"key %d" % number, value, [("name", b"%d" % number), ("none", None)])
    made = bytes(builder.build(producer_id=900, producer_epoch=3, base_sequence=40))
    create(client, name, compression_type=compression_type)
    assert send_batch(client, name, batch(b"before")).error_code == ErrorCode.NONE
    assert send_batch(client, name, made).base_offset == 1

    kept = bytes(fetch(client, name, offset=1).records or b"")
    header, original = read_header(kept), read_header(made)
    assert header.compression == CODECS[compression_type]
    assert (header.base_offset, header.record_count, header.last_offset_delta) == (1, 100, 99)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (900, 3, 40)
    assert (header.base_timestamp, header.max_timestamp) == (original.base_timestamp, original.max_timestamp)
    assert [(r.timestamp, r.key, r.value, r.headers) for r in RecordReader(kept)] == [
        (r.timestamp, r.key, r.value, r.headers) for r in RecordReader(made)
    ]


def test_a_batch_already_in_the_topics_codec_passes_through_unchanged(client: RawClient, name: str) -> None:
    create(client, name, compression_type="zstd")
    made = batch(*VALUES, codec=ZSTD)
    send_batch(client, name, made)
    assert stored(client, name)[61:] == made[61:]


def test_a_recompressed_duplicate_is_still_recognized(client: RawClient, name: str) -> None:
    create(client, name, compression_type="gzip")
    for expected in (0, 0, 1, 0):
        numbers = {"producer_id": 901, "producer_epoch": 0, "base_sequence": expected}
        made = bytes(any_batch(record(), base_timestamp=NOW_MS, max_timestamp=NOW_MS, **numbers))
        result = send_batch(client, name, made)
        assert (result.error_code, result.base_offset) == (ErrorCode.NONE, expected)
    assert fetch(client, name).high_watermark == 2


def test_a_config_change_applies_to_the_next_batch(client: RawClient, name: str) -> None:
    create(client, name)
    for compression_type in ("producer", "lz4", "uncompressed", "producer"):
        set_topic_config(client, name, "compression.type", compression_type)
        send_batch(client, name, batch(*VALUES, codec=GZIP))
    found = [read_header(bytes(fetch(client, name, offset=100 * at).records or b"")).compression for at in range(4)]
    assert found == [GZIP, LZ4, NONE, GZIP]
    assert values_in(client, name, offset=200) == VALUES * 2


@pytest.mark.parametrize(("codec", "fast", "small"), [("gzip", "1", "9"), ("lz4", "1", "12"), ("zstd", "-50", "19")])
def test_the_compression_level_is_a_topic_config(
    client: RawClient, name: str, codec: str, fast: str, small: str
) -> None:
    pick = random.Random(5)
    words = [pick.randbytes(pick.randint(2, 9)) for _ in range(2000)]
    made = batch(b" ".join(pick.choices(words, k=50_000)))
    sizes = []
    for level in (fast, small):
        topic = f"{name}{level}"
        create_topic(client, topic, configs={"compression.type": codec, f"compression.{codec}.level": level})
        assert send_batch(client, topic, made).error_code == ErrorCode.NONE
        sizes.append(len(stored(client, topic)))
    assert sizes[1] < 0.95 * sizes[0]
    assert sizes[0] < len(made)


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
@pytest.mark.parametrize("compression_type", ["uncompressed", "lz4"])
def test_a_decompression_bomb_is_refused_and_the_topic_keeps_working(
    client: RawClient, name: str, codec: str, compression_type: str
) -> None:
    create(client, name, compression_type=compression_type)
    bomb = bytes(getattr(cramjam, codec).compress(bytes(100 << 20)))
    made = bytes(any_batch(bomb, 1, attributes=CODECS[codec]))
    assert send_batch(client, name, made).error_code == ErrorCode.INVALID_RECORD
    assert send_batch(client, name, batch(b"a")).base_offset == 0


@pytest.mark.parametrize("codec", range(1, 5))
def test_a_batch_that_does_not_decompress_is_refused(client: RawClient, name: str, codec: int) -> None:
    create(client, name, compression_type="uncompressed")
    made = bytes(any_batch(b"\x55" * 50, 1, attributes=codec))
    assert send_batch(client, name, made).error_code == ErrorCode.CORRUPT_MESSAGE


def test_the_size_limit_applies_to_the_received_and_the_stored_batch(client: RawClient, name: str) -> None:
    create(client, name, compression_type="uncompressed", max_message_bytes="1000")
    assert send_batch(client, name, batch(bytes(900), codec=GZIP)).error_code == ErrorCode.NONE
    assert send_batch(client, name, batch(bytes(2000), codec=GZIP)).error_code == ErrorCode.MESSAGE_TOO_LARGE
    set_topic_config(client, name, "compression.type", "gzip")
    assert send_batch(client, name, batch(bytes(2000))).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert send_batch(client, name, batch(bytes(2000), codec=GZIP)).error_code == ErrorCode.NONE


def test_recompression_does_not_hide_a_wrong_checksum(client: RawClient, name: str) -> None:
    create(client, name, compression_type="zstd")
    made = bytearray(batch(b"value", b"another"))
    made[-3] ^= 1
    assert send_batch(client, name, bytes(made)).error_code == ErrorCode.CORRUPT_MESSAGE
