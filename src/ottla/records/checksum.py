"""CRC-32C (Castagnoli), the checksum of record batches and of producer snapshots."""

from __future__ import annotations

from typing import Final

from fastcrc import crc32

crc32c: Final = crc32.iscsi
