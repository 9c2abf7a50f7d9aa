"""Producer ids, allocated from the catalog in blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.storage.catalog.catalog import Catalog


class ProducerIds:
    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._left: Iterator[int] = iter(())

    def next(self) -> int:
        for producer_id in self._left:
            return producer_id
        self._left = iter(self._catalog.next_producer_ids().ids)
        return next(self._left)
