"""What can be done to a topic, a group and the cluster; and as a field of bits, one per ACL operation.

Handlers answer for somebody who may do all of it. Where ACLs are on, `authorization` puts in what the client may.
"""

from __future__ import annotations

from typing import Final

from ottla.storage.catalog.entries import AclOperation

NOT_ASKED: Final = -(1 << 31)
"""What stands in the field for a client that did not ask, and in Kafka's schemas as the default."""


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
