"""Commits for a group: a member commits only partitions it owns, while it is in the group."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, Protocol

from ottla.client.errors import ClientError, CommitFailed, broker_error
from ottla.client.group.offsets import GroupOffsets, Identity
from ottla.core.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from ottla.client.config import ConsumerConfig
    from ottla.client.group.interface import Committed
    from ottla.core.ids import TopicPartition

_log: Final = logging.getLogger(__name__)


class CommitterState(Protocol):
    """The committer's state in the group; `MemberState`, or a consumer with manual assignment."""

    @property
    def group(self) -> str: ...
    @property
    def generation(self) -> int: ...
    @property
    def member_id(self) -> str: ...
    @property
    def instance_id(self) -> str | None: ...

    @property
    def is_lost(self) -> bool:
        """Whether the owned partitions belong to other members by now."""

    @property
    def owned(self) -> Collection[TopicPartition]: ...

    def owned_since(self, at: TopicPartition) -> int | None:
        """The generation that assigned this partition, if it is owned."""


class Commits:
    def __init__(
        self,
        offsets: GroupOffsets,
        committer: CommitterState,
        config: ConsumerConfig,
        positions: Callable[[], Mapping[TopicPartition, Committed]],
        joined: asyncio.Event,
    ) -> None:
        """`joined` is cleared while the group rebalances without this member knowing yet."""
        self.is_automatic = config.auto_commit
        self._offsets = offsets
        self._committer = committer
        self._interval_s = config.auto_commit_interval_ms / 1000
        self._positions = positions
        self._joined = joined
        self._last: dict[TopicPartition, tuple[int | None, Committed]] = {}

    async def commit(self, offsets: Mapping[TopicPartition, Committed]) -> None:
        """Raises CommitFailed if a partition is not, or no longer, owned by this member."""
        since = {at: self._committer.owned_since(at) for at in offsets}
        sent_in: int | None = None

        def identity() -> Identity:
            nonlocal sent_in
            sent_in = None
            self._check_owned(since)
            sent_in = self._committer.generation
            return Identity(sent_in, self._committer.member_id, self._committer.instance_id)

        while True:
            try:
                await self._offsets.commit(offsets, identity)
            except CommitFailed as failed:
                # After a rebalance this member may own the same partitions in the new generation.
                is_outrun = not self._joined.is_set() or self._committer.generation != sent_in
                if failed.code is not ErrorCode.ILLEGAL_GENERATION or sent_in is None or not is_outrun:
                    raise
                if not await self.until_joined():
                    raise
            else:
                self._last.update({at: (since[at], committed) for at, committed in offsets.items()})
                return

    async def until_joined(self) -> bool:
        """Wait until the member has joined. Returns False if the deadline passed before."""
        try:
            async with asyncio.timeout(self._offsets.timeout_s):
                await self._joined.wait()
        except TimeoutError:
            return False
        return True

    async def commit_positions(self, partitions: Collection[TopicPartition]) -> None:
        """Commit the application's progress, with auto_commit; on failure the records are read again by others."""
        if not self.is_automatic:
            return
        reached = self._positions()
        new = {
            at: reached[at]
            for at in partitions
            if at in reached and self._last.get(at) != (self._committer.owned_since(at), reached[at])
        }
        try:
            await self.commit(new)
        except ClientError as failed:
            _log.warning("automatic commit for group %r failed: %s", self._committer.group, failed)

    async def keep_committing(self) -> None:
        while True:
            await asyncio.sleep(self._interval_s)
            if not self._committer.is_lost:
                await self.commit_positions(self._committer.owned)

    def _check_owned(self, since: Mapping[TopicPartition, int | None]) -> None:
        if self._committer.is_lost:
            why = f"commit: not a member of group {self._committer.group!r}"
            raise broker_error(ErrorCode.UNKNOWN_MEMBER_ID, why)
        for at, generation in since.items():
            if generation is None or self._committer.owned_since(at) != generation:
                raise broker_error(ErrorCode.ILLEGAL_GENERATION, f"commit of {at}, which this member does not own")
