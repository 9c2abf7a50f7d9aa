"""Applies a topic's config to batches before the append: `compression.type`, keys for compaction, schema ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

from ottla.core.errors import InvalidRecord, MessageTooLarge
from ottla.records.batch import HEADER_BYTES, check_produced
from ottla.records.compression import COMPRESSION_MASK, Compression, DecompressedTooLarge, decompress
from ottla.records.recompress import with_records

if TYPE_CHECKING:
    from ottla.broker.configs.topic_config import SchemaRule, TopicConfig

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
    """A batch ready to be appended."""

    batch: memoryview | bytearray
    has_keys: bool = False
    """Whether every record is known to have a key."""
    inflated_bytes: int = 0
    is_thinned: bool = False
    """Whether invalid records were removed after validation."""


class Intake(Struct, frozen=True, gc=False):
    codec: Compression | None
    """None if batches keep their producers' compression."""
    level: int | None
    needs_keys: bool
    max_message_bytes: int
    schemas: SchemaRule | None = None
    """Applied by the broker's SchemaValidation, which knows the schemas."""

    @classmethod
    def of(cls, config: TopicConfig) -> Intake | None:
        """None if batches are appended unchanged."""
        if config.keeps_batches:
            return None
        codec = _CODECS.get(config.compression_type)
        needs_keys = config.log.cleanup_policy != "delete"
        return cls(codec, config.compression_level, needs_keys, config.log.max_message_bytes, config.schemas)

    def apply(self, batch: memoryview, limit: int) -> Prepared:
        """Raises DecompressedTooLarge if the limit is exceeded."""
        if len(batch) <= HEADER_BYTES:
            return Prepared(batch)  # the log reports the error
        codec = batch[_ATTRIBUTES_AT] & COMPRESSION_MASK
        is_converted = self.codec is not None and codec != self.codec
        if not is_converted and not self.needs_keys:
            return Prepared(batch)
        # Checked before the conversion as well, so that an oversized batch is not converted.
        if len(batch) > self.max_message_bytes:
            raise MessageTooLarge(f"a batch of {len(batch)} bytes exceeds max.message.bytes ({self.max_message_bytes})")
        if is_converted and len(batch) > limit:
            raise DecompressedTooLarge(f"the decompressed batch exceeds {limit} bytes")
        header = check_produced(batch)
        records = decompress(header.compression, batch[HEADER_BYTES:], limit)
        if self.needs_keys:
            _check_keys(records)
        made = with_records(batch, header, records, self.codec or 0, self.level) if is_converted else batch
        return Prepared(made, self.needs_keys, len(records))


def _check_keys(records: bytes | bytearray | memoryview) -> None:
    from ottla.records.key_offsets import has_keyless  # only now: few topics are compacted

    if has_keyless(records):
        raise InvalidRecord("records of a compacted topic must have a key")
