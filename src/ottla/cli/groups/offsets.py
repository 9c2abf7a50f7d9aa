"""Offsets of a group of any type: read, set, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.client.errors import BrokerError
from ottla.core.errors import ConfigError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ottla.client.admin.admin import Admin
    from ottla.client.admin.groups import GroupDescription
    from ottla.core.ids import TopicPartition


async def found_group(admin: Admin, name: str) -> GroupDescription | None:
    """None if there is no such group."""
    try:
        return await admin.describe_group(name)
    except BrokerError as error:
        if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return None


def is_share(about: GroupDescription | None) -> bool:
    return about is not None and about.type == "share"


async def offsets_of(admin: Admin, name: str, about: GroupDescription | None) -> dict[TopicPartition, int]:
    """The committed offsets; for a share group, its start offsets."""
    if is_share(about):
        return {where: each.start for where, each in (await admin.share_group_offsets(name)).items()}
    return {where: each.offset for where, each in (await admin.group_offsets(name)).items()}


async def set_offsets(
    admin: Admin, name: str, about: GroupDescription | None, offsets: Mapping[TopicPartition, int]
) -> None:
    alter = admin.alter_share_group_offsets if is_share(about) else admin.alter_group_offsets
    for error in (await alter(name, offsets)).values():
        if error is not None:
            raise error


async def forget_offsets(
    admin: Admin, name: str, wanted: Mapping[str, list[int] | None], partitions: Sequence[TopicPartition]
) -> Mapping[TopicPartition, BrokerError | None] | Mapping[str, BrokerError | None]:
    """Delete the offsets of these topics; `partitions` are the selected partitions."""
    if not is_share(await found_group(admin, name)):
        return await admin.delete_group_offsets(name, partitions)
    if any(some is not None for some in wanted.values()):
        raise ConfigError(
            f"{name!r} is a share group: only whole topics can be deleted; name topics without partitions"
        )
    return await admin.delete_share_group_offsets(name, wanted)
