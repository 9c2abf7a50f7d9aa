"""Handling of data loss, by failOnDataLoss."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ottla.spark.errors import DataLoss
    from ottla.spark.reader.options import SourceOptions

_log: Final = logging.getLogger(__name__)


def lose(error: DataLoss, options: SourceOptions) -> None:
    """Raise, or log a warning and continue."""
    if options.fail_on_data_loss:
        raise error
    _log.warning("data is lost: %s", error)
