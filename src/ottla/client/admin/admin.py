"""All admin calls in one class."""

from __future__ import annotations

from ottla.client.admin.acls import AclAdmin
from ottla.client.admin.cluster import ClusterAdmin
from ottla.client.admin.configs import ConfigAdmin
from ottla.client.admin.groups import GroupAdmin
from ottla.client.admin.offsets import OffsetAdmin
from ottla.client.admin.partitions import PartitionAdmin
from ottla.client.admin.tokens import TokenAdmin
from ottla.client.admin.topics import TopicAdmin
from ottla.client.admin.transactions import TransactionAdmin
from ottla.client.admin.users import UserAdmin


class Admin(
    TopicAdmin,
    ConfigAdmin,
    GroupAdmin,
    OffsetAdmin,
    PartitionAdmin,
    ClusterAdmin,
    UserAdmin,
    AclAdmin,
    TokenAdmin,
    TransactionAdmin,
):
    """`client.admin`. A call for one item raises its error; a call for several returns the errors of failed items."""
