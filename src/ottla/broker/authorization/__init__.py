"""Authorization of clients: one rule per API, around its handler. Imported on first use."""

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
