"""Reads records of a partition in chunks, yielding in between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.interfaces.fetched import Piece, fetch, records_in
from ottla.broker.interfaces.in_process_requests import raise_refusal
from ottla.http.framework.endpoints import others

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ottla.http.framework.endpoints import Call

_FIRST_BYTES: Final = 16 * 1024
MOST_BYTES: Final = 128 * 1024
"""Chunk sizes: small at first, since many clients want only a few messages, then larger."""


async def read_on(call: Call, topic: str, partition: int, offset: int, until: int) -> AsyncIterator[Piece]:
    """All records from `offset` to below `until`."""
    max_bytes = _FIRST_BYTES
    while offset < until:
        [data] = await fetch(call, topic, {partition: offset}, max_bytes=max_bytes)
        max_bytes = min(2 * max_bytes, MOST_BYTES)
        await others()
        raise_refusal(data.error_code)
        before = offset
        for piece in records_in(data, offset):
            if piece.next_offset > until:
                yield Piece([record for record in piece.records if record.offset < until], until)
                return
            offset = piece.next_offset
            yield piece
            await others()
        if offset == before:
            return
