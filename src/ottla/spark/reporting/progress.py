"""Commits a query's progress to a consumer group, so that its lag is visible.

Spark's checkpoint is authoritative; these offsets are never read.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from ottla.client.errors import ClientError

if TYPE_CHECKING:
    from ottla.client.blocking.background import Background
    from ottla.spark.reader.offsets import Offsets

_log: Final = logging.getLogger(__name__)


class GroupProgress:
    def __init__(self, link: Background, group: str) -> None:
        self._link = link
        self._group = group
        self._told: Offsets = {}

    def tell(self, offsets: Offsets) -> None:
        """Everything below these offsets is processed. A failed commit does not stop a query."""
        if offsets == self._told:
            return
        try:
            outcomes = self._link.call(self._link.client.admin.alter_group_offsets(self._group, offsets))
        except ClientError as failed:
            _log.warning("could not commit the query's progress to group %s: %s", self._group, failed)
            return
        for refused in outcomes.values():
            if refused is not None:
                _log.warning("%s", refused)
        self._told = dict(offsets)
