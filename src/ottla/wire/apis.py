"""All known APIs in one table. Which of them a broker serves is decided elsewhere.

Message modules are loaded with the first message of their API: most processes need few of them.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

    from ottla.wire.declare import Request, Response


class Api(Struct, frozen=True):
    key: int
    name: str
    first: int
    """The lowest supported version."""
    last: int
    flexible_since: int | None
    """The first version with compact lengths and tagged fields (KIP-482)."""
    advertised_from: int
    """The lowest version in the ApiVersions response."""
    home: str = ""
    """The module with the API's messages, handler and record (`SERVED`), if one module has all of them."""

    def is_flexible(self, version: int) -> bool:
        return self.flexible_since is not None and version >= self.flexible_since

    def speaks(self, version: int) -> bool:
        return self.first <= version <= self.last

    def __str__(self) -> str:
        return f"{self.name} ({self.key})"


_by_key: dict[int, Api] = {}
APIS: Final[Mapping[int, Api]] = _by_key


def _api(  # noqa: PLR0913 - all that is declared of an API
    key: int,
    name: str,
    first: int,
    last: int,
    *,
    flexible_since: int | None,
    advertised_from: int | None = None,
    home: str = "",
) -> Api:
    lowest = first if advertised_from is None else advertised_from
    api = _by_key[key] = Api(key, name, first, last, flexible_since, lowest, home)
    return api


PRODUCE: Final = _api(0, "Produce", 3, 13, flexible_since=9, advertised_from=0)
FETCH: Final = _api(1, "Fetch", 4, 18, flexible_since=12)
LIST_OFFSETS: Final = _api(2, "ListOffsets", 1, 11, flexible_since=6)
METADATA: Final = _api(3, "Metadata", 0, 13, flexible_since=9)
OFFSET_COMMIT: Final = _api(8, "OffsetCommit", 2, 10, flexible_since=8)
OFFSET_FETCH: Final = _api(9, "OffsetFetch", 1, 10, flexible_since=6)
FIND_COORDINATOR: Final = _api(10, "FindCoordinator", 0, 6, flexible_since=3)
JOIN_GROUP: Final = _api(11, "JoinGroup", 0, 9, flexible_since=6)
HEARTBEAT: Final = _api(12, "Heartbeat", 0, 4, flexible_since=4)
LEAVE_GROUP: Final = _api(13, "LeaveGroup", 0, 5, flexible_since=4)
SYNC_GROUP: Final = _api(14, "SyncGroup", 0, 5, flexible_since=4)
DESCRIBE_GROUPS: Final = _api(15, "DescribeGroups", 0, 6, flexible_since=5)
LIST_GROUPS: Final = _api(16, "ListGroups", 0, 5, flexible_since=3)
SASL_HANDSHAKE: Final = _api(17, "SaslHandshake", 0, 1, flexible_since=None)
API_VERSIONS: Final = _api(18, "ApiVersions", 0, 4, flexible_since=3)
CREATE_TOPICS: Final = _api(19, "CreateTopics", 2, 7, flexible_since=5)
DELETE_TOPICS: Final = _api(20, "DeleteTopics", 1, 6, flexible_since=4)
DELETE_RECORDS: Final = _api(21, "DeleteRecords", 0, 2, flexible_since=2)
INIT_PRODUCER_ID: Final = _api(22, "InitProducerId", 0, 5, flexible_since=2)
OFFSET_FOR_LEADER_EPOCH: Final = _api(23, "OffsetForLeaderEpoch", 2, 4, flexible_since=4)
ADD_PARTITIONS_TO_TXN: Final = _api(24, "AddPartitionsToTxn", 0, 5, flexible_since=3)
ADD_OFFSETS_TO_TXN: Final = _api(25, "AddOffsetsToTxn", 0, 4, flexible_since=3)
END_TXN: Final = _api(26, "EndTxn", 0, 5, flexible_since=3)
WRITE_TXN_MARKERS: Final = _api(27, "WriteTxnMarkers", 1, 2, flexible_since=1)
TXN_OFFSET_COMMIT: Final = _api(28, "TxnOffsetCommit", 0, 5, flexible_since=3)
DESCRIBE_ACLS: Final = _api(29, "DescribeAcls", 1, 3, flexible_since=2)
CREATE_ACLS: Final = _api(30, "CreateAcls", 1, 3, flexible_since=2)
DELETE_ACLS: Final = _api(31, "DeleteAcls", 1, 3, flexible_since=2)
DESCRIBE_CONFIGS: Final = _api(32, "DescribeConfigs", 1, 4, flexible_since=4)
ALTER_CONFIGS: Final = _api(33, "AlterConfigs", 0, 2, flexible_since=2)
DESCRIBE_LOG_DIRS: Final = _api(35, "DescribeLogDirs", 1, 5, flexible_since=2)
SASL_AUTHENTICATE: Final = _api(36, "SaslAuthenticate", 0, 2, flexible_since=2)
CREATE_PARTITIONS: Final = _api(37, "CreatePartitions", 0, 3, flexible_since=2)
CREATE_DELEGATION_TOKEN: Final = _api(38, "CreateDelegationToken", 1, 3, flexible_since=2)
RENEW_DELEGATION_TOKEN: Final = _api(39, "RenewDelegationToken", 1, 2, flexible_since=2)
EXPIRE_DELEGATION_TOKEN: Final = _api(40, "ExpireDelegationToken", 1, 2, flexible_since=2)
DESCRIBE_DELEGATION_TOKEN: Final = _api(41, "DescribeDelegationToken", 1, 3, flexible_since=2)
DELETE_GROUPS: Final = _api(42, "DeleteGroups", 0, 2, flexible_since=2)
ELECT_LEADERS: Final = _api(43, "ElectLeaders", 0, 2, flexible_since=2)
INCREMENTAL_ALTER_CONFIGS: Final = _api(44, "IncrementalAlterConfigs", 0, 1, flexible_since=1)
ALTER_PARTITION_REASSIGNMENTS: Final = _api(45, "AlterPartitionReassignments", 0, 1, flexible_since=0)
LIST_PARTITION_REASSIGNMENTS: Final = _api(46, "ListPartitionReassignments", 0, 0, flexible_since=0)
OFFSET_DELETE: Final = _api(47, "OffsetDelete", 0, 0, flexible_since=None)
DESCRIBE_CLIENT_QUOTAS: Final = _api(48, "DescribeClientQuotas", 0, 1, flexible_since=1)
ALTER_CLIENT_QUOTAS: Final = _api(49, "AlterClientQuotas", 0, 1, flexible_since=1)
DESCRIBE_USER_SCRAM_CREDENTIALS: Final = _api(50, "DescribeUserScramCredentials", 0, 0, flexible_since=0)
ALTER_USER_SCRAM_CREDENTIALS: Final = _api(51, "AlterUserScramCredentials", 0, 0, flexible_since=0)
DESCRIBE_CLUSTER: Final = _api(60, "DescribeCluster", 0, 2, flexible_since=0)
DESCRIBE_PRODUCERS: Final = _api(61, "DescribeProducers", 0, 0, flexible_since=0)
DESCRIBE_TRANSACTIONS: Final = _api(65, "DescribeTransactions", 0, 0, flexible_since=0)
LIST_TRANSACTIONS: Final = _api(66, "ListTransactions", 0, 2, flexible_since=0)
CONSUMER_GROUP_HEARTBEAT: Final = _api(68, "ConsumerGroupHeartbeat", 0, 1, flexible_since=0)
CONSUMER_GROUP_DESCRIBE: Final = _api(69, "ConsumerGroupDescribe", 0, 1, flexible_since=0)
LIST_CONFIG_RESOURCES: Final = _api(74, "ListConfigResources", 0, 1, flexible_since=0)
DESCRIBE_TOPIC_PARTITIONS: Final = _api(75, "DescribeTopicPartitions", 0, 0, flexible_since=0)
SHARE_GROUP_HEARTBEAT: Final = _api(76, "ShareGroupHeartbeat", 1, 1, flexible_since=0)
SHARE_GROUP_DESCRIBE: Final = _api(77, "ShareGroupDescribe", 1, 1, flexible_since=0)
SHARE_FETCH: Final = _api(78, "ShareFetch", 1, 2, flexible_since=0)
SHARE_ACKNOWLEDGE: Final = _api(79, "ShareAcknowledge", 1, 2, flexible_since=0)
INITIALIZE_SHARE_GROUP_STATE: Final = _api(83, "InitializeShareGroupState", 0, 0, flexible_since=0)
READ_SHARE_GROUP_STATE: Final = _api(84, "ReadShareGroupState", 0, 0, flexible_since=0)
WRITE_SHARE_GROUP_STATE: Final = _api(85, "WriteShareGroupState", 0, 1, flexible_since=0)
DELETE_SHARE_GROUP_STATE: Final = _api(86, "DeleteShareGroupState", 0, 0, flexible_since=0)
READ_SHARE_GROUP_STATE_SUMMARY: Final = _api(87, "ReadShareGroupStateSummary", 0, 1, flexible_since=0)
DESCRIBE_SHARE_GROUP_OFFSETS: Final = _api(90, "DescribeShareGroupOffsets", 0, 1, flexible_since=0)
ALTER_SHARE_GROUP_OFFSETS: Final = _api(91, "AlterShareGroupOffsets", 0, 0, flexible_since=0)
DELETE_SHARE_GROUP_OFFSETS: Final = _api(92, "DeleteShareGroupOffsets", 0, 0, flexible_since=0)


def request_type(api: Api) -> type[Request]:
    request: type[Request] = getattr(_module(api), f"{api.name}Request")
    return request


def response_type(api: Api) -> type[Response]:
    response: type[Response] = getattr(_module(api), f"{api.name}Response")
    return response


def _module(api: Api) -> ModuleType:
    if api.home:
        return import_module(api.home)
    words = re.sub(r"(?<!^)(?=[A-Z])", "_", api.name)
    return import_module(f"ottla.wire.messages.{words.lower()}")
