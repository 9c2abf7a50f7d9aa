"""One module per API family: a request and its context in, a response out. Imported when they are first used."""

from typing import TYPE_CHECKING

from ottla.core.lazy import importer_of_modules

if TYPE_CHECKING:
    from ottla.broker.handlers import (
        acls,
        api_versions,
        cluster,
        configs,
        consumer_groups,
        create_topics,
        delegation_tokens,
        delete_records,
        delete_topics,
        fetch,
        group_offsets,
        groups,
        log_dirs,
        metadata,
        offsets,
        produce,
        quotas,
        reassignments,
        sasl,
        share_fetch,
        share_groups,
        share_state,
        topic_partitions,
        transaction_admin,
        transactions,
        txn_offsets,
        users,
    )

__all__ = (
    "acls",
    "api_versions",
    "cluster",
    "configs",
    "consumer_groups",
    "create_topics",
    "delegation_tokens",
    "delete_records",
    "delete_topics",
    "fetch",
    "group_offsets",
    "groups",
    "log_dirs",
    "metadata",
    "offsets",
    "produce",
    "quotas",
    "reassignments",
    "sasl",
    "share_fetch",
    "share_groups",
    "share_state",
    "topic_partitions",
    "transaction_admin",
    "transactions",
    "txn_offsets",
    "users",
)

__getattr__ = importer_of_modules(__name__)
