"""compression.type of a topic: batches that come in another compression are converted before they are appended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from ottla.core.errors import MessageTooLarge
from ottla.records.compression import COMPRESSION_MASK, Compression
from ottla.records.recompress import recompressed

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
_MOST_DECOMPRESSED_BYTES: Final = 32 << 20
"""More than this out of one batch is a bomb, unless the topic takes larger batches: the event loop waits for it."""


class Recompression(Struct, frozen=True, gc=False):
    codec: Compression
    level: int | None
    max_message_bytes: int

    @classmethod
    def of(cls, config: TopicConfig) -> Recompression | None:
        """None where batches stay as their producers sent them."""
        codec = _CODECS.get(config.compression_type)
        if codec is None:
            return None
        return cls(codec, config.compression_level, config.log.max_message_bytes)

    def apply(self, batch: memoryview) -> memoryview | bytearray:
        if len(batch) <= _ATTRIBUTES_AT or batch[_ATTRIBUTES_AT] & COMPRESSION_MASK == self.codec:
            return batch
        # As it came, too, and not only as it will be stored: what is too large is not worth the work.
        if len(batch) > self.max_message_bytes:
            raise MessageTooLarge(f"{len(batch)} bytes; {self.max_message_bytes} are allowed")
        most = max(_MOST_DECOMPRESSED_BYTES, self.max_message_bytes)
        return recompressed(batch, self.codec, self.level, most)
