"""`ottla.Admin`: blocking administration."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from ottla.client.admin.admin import Admin as AsyncAdmin
from ottla.client.blocking.background import Background

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable
    from typing import Self, Unpack

    from ottla.client.options import ClientOptions

P = ParamSpec("P")
T = TypeVar("T")


def _blocking(
    method: Callable[Concatenate[AsyncAdmin, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Admin, P], T]:
    """The blocking form of the method, with the same arguments and documentation."""

    @wraps(method)
    def call(self: Admin, /, *arguments: P.args, **named: P.kwargs) -> T:
        return self.run(lambda admin: method(admin, *arguments, **named))

    return call


class Admin:
    """`with ottla.Admin("localhost:9092") as admin: admin.create_topic("orders", partitions=6)`."""

    def __init__(self, servers: str | Iterable[str], **options: Unpack[ClientOptions]) -> None:
        self._background = Background("admin client", servers, options)
        self._background.closes_with(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections. Idempotent."""
        self._background.close()

    def run(self, ask: Callable[[AsyncAdmin], Coroutine[Any, Any, T]]) -> T:
        """Run a call of the async admin in its event loop."""

        async def asked() -> T:
            return await ask(self._background.client.admin)

        return self._background.call(asked())

    create_topic = _blocking(AsyncAdmin.create_topic)
    create_topics = _blocking(AsyncAdmin.create_topics)
    delete_topic = _blocking(AsyncAdmin.delete_topic)
    delete_topics = _blocking(AsyncAdmin.delete_topics)
    list_topics = _blocking(AsyncAdmin.list_topics)
    describe_topic = _blocking(AsyncAdmin.describe_topic)
    describe_topics = _blocking(AsyncAdmin.describe_topics)
    create_partitions = _blocking(AsyncAdmin.create_partitions)

    describe_configs = _blocking(AsyncAdmin.describe_configs)
    alter_configs = _blocking(AsyncAdmin.alter_configs)

    list_groups = _blocking(AsyncAdmin.list_groups)
    describe_group = _blocking(AsyncAdmin.describe_group)
    delete_group = _blocking(AsyncAdmin.delete_group)
    delete_groups = _blocking(AsyncAdmin.delete_groups)

    earliest_offsets = _blocking(AsyncAdmin.earliest_offsets)
    latest_offsets = _blocking(AsyncAdmin.latest_offsets)
    offsets_at = _blocking(AsyncAdmin.offsets_at)
    delete_records = _blocking(AsyncAdmin.delete_records)
    list_transactions = _blocking(AsyncAdmin.list_transactions)
    describe_transaction = _blocking(AsyncAdmin.describe_transaction)
    end_transactions_of = _blocking(AsyncAdmin.end_transactions_of)
    describe_producers = _blocking(AsyncAdmin.describe_producers)
    abort_transaction = _blocking(AsyncAdmin.abort_transaction)
    find_hanging_transactions = _blocking(AsyncAdmin.find_hanging_transactions)
    group_offsets = _blocking(AsyncAdmin.group_offsets)
    alter_group_offsets = _blocking(AsyncAdmin.alter_group_offsets)
    delete_group_offsets = _blocking(AsyncAdmin.delete_group_offsets)
    share_group_offsets = _blocking(AsyncAdmin.share_group_offsets)
    alter_share_group_offsets = _blocking(AsyncAdmin.alter_share_group_offsets)
    delete_share_group_offsets = _blocking(AsyncAdmin.delete_share_group_offsets)

    reassign_partitions = _blocking(AsyncAdmin.reassign_partitions)
    list_reassignments = _blocking(AsyncAdmin.list_reassignments)
    elect_leaders = _blocking(AsyncAdmin.elect_leaders)

    describe_cluster = _blocking(AsyncAdmin.describe_cluster)

    list_users = _blocking(AsyncAdmin.list_users)
    set_password = _blocking(AsyncAdmin.set_password)
    set_password_expiry = _blocking(AsyncAdmin.set_password_expiry)
    delete_user = _blocking(AsyncAdmin.delete_user)
    list_acls = _blocking(AsyncAdmin.list_acls)
    create_acls = _blocking(AsyncAdmin.create_acls)
    delete_acls = _blocking(AsyncAdmin.delete_acls)
    create_token = _blocking(AsyncAdmin.create_token)
    list_tokens = _blocking(AsyncAdmin.list_tokens)
    renew_token = _blocking(AsyncAdmin.renew_token)
    expire_token = _blocking(AsyncAdmin.expire_token)
    list_quotas = _blocking(AsyncAdmin.list_quotas)
    alter_quota = _blocking(AsyncAdmin.alter_quota)
