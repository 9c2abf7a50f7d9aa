"""What clients may do: one rule for each API, around its handler and not in it. Imported when first used."""

from typing import TYPE_CHECKING

from ottla.core.lazy import importer_of_modules

if TYPE_CHECKING:
    from ottla.broker.authorization import (
        cluster,
        groups,
        share_groups,
        topics,
        transactions,
    )

__all__ = (
    "cluster",
    "groups",
    "share_groups",
    "topics",
    "transactions",
)

__getattr__ = importer_of_modules(__name__)
