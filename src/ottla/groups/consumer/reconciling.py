"""One reconciliation step of a member: first it revokes, then it is assigned partitions.

A partition is never owned by two members: it is assigned only after its owner has confirmed the revocation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.groups.consumer.current import Current, MemberState

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.groups.partitions import Assigned, Partition


def reconcile(
    current: Current, target_epoch: int, target: Assigned, owned: Assigned | None, is_free: Callable[[Partition], bool]
) -> Current:
    """The member's next step. `owned` are the partitions that it reports to own, if it does; `is_free` returns whether
    no other member owns a partition.
    """
    if current.is_reconciled_to(target_epoch):
        return current
    epoch = current.epoch
    if current.state is MemberState.UNREVOKED_PARTITIONS:
        if _has_any(owned, current.revoked.keys()):
            return current
        epoch += 1
    return _next(current, epoch, target_epoch, target, owned, is_free)


def _next(  # noqa: PLR0913
    current: Current,
    epoch: int,
    target_epoch: int,
    target: Assigned,
    owned: Assigned | None,
    is_free: Callable[[Partition], bool],
) -> Current:
    kept = {partition: since for partition, since in current.assigned.items() if partition in target}
    revoked = {partition: since for partition, since in current.assigned.items() if partition not in target}
    if revoked and _has_any(owned, revoked.keys()):
        return Current(epoch, current.epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoked)
    wanted = target - kept.keys()
    released = [partition for partition in wanted if is_free(partition)]
    kept.update(dict.fromkeys(released, target_epoch))
    is_whole = len(released) == len(wanted)
    state = MemberState.STABLE if is_whole else MemberState.UNRELEASED_PARTITIONS
    return Current(target_epoch, current.epoch, state, kept)


def _has_any(owned: Assigned | None, revoked: object) -> bool:
    """Whether the member still owns any of these. If it does not report its partitions, it is assumed to own all that
    it had.
    """
    return owned is None or not owned.isdisjoint(revoked)  # type: ignore[arg-type]  # keys of a mapping
