"""What a client may do, as a field of bits, one per ACL operation.

Nobody authorizes yet, so whoever asks may do all that there is to do.
"""

from __future__ import annotations

from typing import Final

from ottla.storage.catalog.entries import AclOperation

NOT_ASKED: Final = -(1 << 31)
"""What stands in the field for a client that did not ask, and in Kafka's schemas as the default."""


def _bits(*operations: AclOperation) -> int:
    return sum(1 << operation for operation in operations)


ON_TOPIC: Final = _bits(
    AclOperation.READ,
    AclOperation.WRITE,
    AclOperation.CREATE,
    AclOperation.DELETE,
    AclOperation.ALTER,
    AclOperation.DESCRIBE,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
)
ON_GROUP: Final = _bits(
    AclOperation.READ,
    AclOperation.DELETE,
    AclOperation.DESCRIBE,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
)
ON_CLUSTER: Final = _bits(
    AclOperation.CREATE,
    AclOperation.ALTER,
    AclOperation.DESCRIBE,
    AclOperation.CLUSTER_ACTION,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
    AclOperation.IDEMPOTENT_WRITE,
)
