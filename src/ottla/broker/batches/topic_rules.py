"""What a topic's config does to batches before they are appended: `compression.type`, and keys for compaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

from ottla.core.errors import InvalidRecord, MessageTooLarge
from ottla.records.batch import HEADER_BYTES, check_produced
from ottla.records.compression import COMPRESSION_MASK, Compression, DecompressedTooLarge, decompress
from ottla.records.recompress import with_records

if TYPE_CHECKING:
    from ottla.broker.configs.topic_config import TopicConfig

_ATTRIBUTES_AT: Final = 22
"""The lower byte of a batch's attributes."""
_CODECS: Final = {
    "uncompressed": Compression.NONE,
    "gzip": Compression.GZIP,
    "snappy": Compression.SNAPPY,
    "lz4": Compression.LZ4,
    "zstd": Compression.ZSTD,
}


class Prepared(NamedTuple):
    """A batch as it is to be stored."""

    batch: memoryview | bytearray
    has_keys: bool = False
    """Every record is known to have one."""
    inflated_bytes: int = 0


class Intake(Struct, frozen=True, gc=False):
    codec: Compression | None
    """None where batches stay compressed as their producers sent them."""
    level: int | None
    needs_keys: bool
    max_message_bytes: int

    @classmethod
    def of(cls, config: TopicConfig) -> Intake | None:
        """None where batches are appended as they come."""
        codec = _CODECS.get(config.compression_type)
        needs_keys = config.log.cleanup_policy != "delete"
        if codec is None and not needs_keys:
            return None
        return cls(codec, config.compression_level, needs_keys, config.log.max_message_bytes)

    def apply(self, batch: memoryview, limit: int) -> Prepared:
        """Raises DecompressedTooLarge if there is more to decompress, or to compress."""
        if len(batch) <= HEADER_BYTES:
            return Prepared(batch)  # the log says what is wrong with it
        codec = batch[_ATTRIBUTES_AT] & COMPRESSION_MASK
        is_converted = self.codec is not None and codec != self.codec
        if not is_converted and not self.needs_keys:
            return Prepared(batch)
        # As it came, too, and not only as it will be stored: what is too large is not worth the work.
        if len(batch) > self.max_message_bytes:
            raise MessageTooLarge(f"{len(batch)} bytes; {self.max_message_bytes} are allowed")
        if is_converted and len(batch) > limit:
            raise DecompressedTooLarge(f"the batch has more than {limit} bytes")
        header = check_produced(batch)
        records = decompress(header.compression, batch[HEADER_BYTES:], limit)
        if self.needs_keys:
            _check_keys(records)
        made = with_records(batch, header, records, self.codec or 0, self.level) if is_converted else batch
        return Prepared(made, self.needs_keys, len(records))


def _check_keys(records: bytes | bytearray | memoryview) -> None:
    from ottla.records.key_offsets import has_keyless  # only now: few topics are compacted

    if has_keyless(records):
        raise InvalidRecord("a compacted topic takes no record without a key")
