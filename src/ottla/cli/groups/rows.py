"""Groups as table rows: members and lag."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ottla.cli.tables import counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.cli.offsets.resets import Bounds
    from ottla.client.admin.groups import GroupDescription, GroupListing, GroupMemberDescription
    from ottla.client.errors import BrokerError
    from ottla.core.ids import TopicPartition

GROUP_COLUMNS: Final = ("group", "state", "type", "protocol")
MEMBER_COLUMNS: Final = ("member", "client", "host", "instance", "partitions")
MEMBER_COLUMNS_WITH_EPOCH: Final = ("member", "epoch", "client", "host", "instance", "partitions")
LAG_COLUMNS: Final = ("topic", "partition", "committed", "end", "lag", "client", "host")


def group_row(group: GroupListing) -> dict[str, Any]:
    return {"group": group.group, "state": group.state, "type": group.type, "protocol": group.protocol_type}


def member_row(member: GroupMemberDescription) -> dict[str, Any]:
    return {
        "member": member.member_id,
        "epoch": member.epoch,
        "client": member.client_id,
        "host": member.client_host.removeprefix("/"),
        "instance": member.instance_id,
        "partitions": [str(where) for where in sorted(member.partitions)],
    }


@dataclass(frozen=True, slots=True)
class DescribedGroup:
    description: GroupDescription
    committed: Mapping[TopicPartition, int]
    bounds: Mapping[TopicPartition, Bounds | BrokerError]
    """Of every partition that the group has committed or that a member has."""
    lags: Mapping[TopicPartition, int | None] = field(default_factory=dict)
    """Of a share group, which may be done with records behind the first that it is not done with."""

    def heading(self) -> str:
        about = self.description
        rows = self.lag_rows()
        parts = [f"{about.group}: {about.state}", counted(len(about.members), "member")]
        if about.epoch is not None:
            parts.append(f"epoch {about.epoch}")
        if about.assignor:
            parts.append(f"assignor {about.assignor}")
        parts.append(f"coordinator {about.coordinator}")
        parts.append(f"lag {total_lag(rows)}")
        return ", ".join(parts)

    @property
    def member_columns(self) -> tuple[str, ...]:
        return MEMBER_COLUMNS if self.description.epoch is None else MEMBER_COLUMNS_WITH_EPOCH

    def member_rows(self) -> list[dict[str, Any]]:
        return [member_row(each) for each in self.description.members]

    def lag_rows(self) -> list[dict[str, Any]]:
        owners = {where: member for member in self.description.members for where in member.partitions}
        rows = []
        for where in sorted({*self.committed, *owners}):
            row = lag_row(where, self.committed.get(where), self.bounds.get(where), owners.get(where))
            rows.append({**row, "lag": self.lags.get(where, row["lag"])})
        return rows

    def as_json(self) -> dict[str, Any]:
        about, rows = self.description, self.lag_rows()
        return {
            "group": about.group,
            "state": about.state,
            "type": about.type,
            "epoch": about.epoch,
            "protocol": about.protocol_type,
            "assignor": about.assignor,
            "coordinator": about.coordinator,
            "lag": total_lag(rows),
            "members": self.member_rows(),
            "partitions": rows,
        }


def lag_row(
    where: TopicPartition,
    committed: int | None,
    bounds: Bounds | BrokerError | None,
    owner: GroupMemberDescription | None,
) -> dict[str, Any]:
    """Without a committed offset there is no lag: members choose where to start."""
    end: int | None = getattr(bounds, "end", None)
    return {
        "topic": where.topic,
        "partition": where.partition,
        "committed": committed,
        "end": end,
        "lag": None if committed is None or end is None else max(0, end - committed),
        "member": None if owner is None else owner.member_id,
        "client": None if owner is None else owner.client_id,
        "host": None if owner is None else owner.client_host.removeprefix("/"),
    }


def total_lag(rows: list[dict[str, Any]]) -> int:
    return sum(row["lag"] or 0 for row in rows)
