"""Kafka's names and codes for users and ACLs."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

ANONYMOUS: Final = "User:ANONYMOUS"
"""Kafka's principal of unauthenticated clients."""
CLUSTER_NAME: Final = "kafka-cluster"
"""The cluster's resource name in ACLs."""
GROUP_TYPE: Final = "Group:"
"""Principals of this type are groups from a token."""
ROLE_TYPE: Final = "Role:"
"""Principals of this type are roles. ALLOW ALL on the USER resource `Role:x` makes a principal a member of role x."""


class LoginFailed(Exception):
    """The message is for the log. Clients are not told which part was wrong."""


class TooManyConnections(LoginFailed):
    """The user is authenticated, so the client is told why the connection is refused."""


class PasswordExpired(LoginFailed):
    """The password is correct, but has expired. The message is also sent to the client."""


class ScramMechanism(IntEnum):
    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2


class Code(IntEnum):
    """Codes added by newer Kafka versions are unknown, not errors."""

    @classmethod
    def _missing_(cls, value: object) -> Code:  # noqa: ARG003 - whatever it is
        return cls(0)


class ResourceType(Code):
    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(Code):
    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(Code):
    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class AclPermission(Code):
    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3
