"""The operations of topics, groups and the cluster, as a bit field with one bit per ACL operation.

Handlers return all operations. With ACLs enabled, `authorization` replaces them by those of the client.
"""

from __future__ import annotations

from typing import Final

from ottla.storage.catalog.entries import AclOperation

NOT_ASKED: Final = -(1 << 31)
"""The value for clients that did not request it, and the default in Kafka's schemas."""


TOPIC_OPERATIONS: Final = (
    AclOperation.READ,
    AclOperation.WRITE,
    AclOperation.CREATE,
    AclOperation.DELETE,
    AclOperation.ALTER,
    AclOperation.DESCRIBE,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
)
GROUP_OPERATIONS: Final = (
    AclOperation.READ,
    AclOperation.DELETE,
    AclOperation.DESCRIBE,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
)
CLUSTER_OPERATIONS: Final = (
    AclOperation.CREATE,
    AclOperation.ALTER,
    AclOperation.DESCRIBE,
    AclOperation.CLUSTER_ACTION,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
    AclOperation.IDEMPOTENT_WRITE,
)

ON_TOPIC: Final = sum(1 << operation for operation in TOPIC_OPERATIONS)
ON_CLUSTER: Final = sum(1 << operation for operation in CLUSTER_OPERATIONS)
