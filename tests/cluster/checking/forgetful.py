"""`ottla` with a planted bug: one partition on another node does not get its end marker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.peers.transaction_requests import TransactionRequests
from ottla.cli.main import main
from ottla.core.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Collection

    from ottla.core.ids import TopicPartition
    from ottla.records.control import EndMarker

_write_markers = TransactionRequests.write_markers


async def _all_but_one(
    lines: TransactionRequests,
    node: int,
    producer: tuple[int, int],
    marker: EndMarker,
    places: Collection[TopicPartition],
) -> dict[TopicPartition, ErrorCode]:
    forgotten, *others = places
    told = await _write_markers(lines, node, producer, marker, others) if others else {}
    return {**told, forgotten: ErrorCode.NONE}


if __name__ == "__main__":
    TransactionRequests.write_markers = _all_but_one  # type: ignore[method-assign]
    main()
