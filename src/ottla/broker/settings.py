"""All settings of a broker, by section."""

from __future__ import annotations

from typing import Final, NamedTuple

from msgspec.structs import replace

from ottla.broker.config import BrokerConfig
from ottla.broker.tracing_config import TracingConfig
from ottla.cluster.config import ClusterConfig
from ottla.cluster.replication.config import ReplicationConfig
from ottla.core.keys import EncryptionConfig
from ottla.groups.config import GroupConfig
from ottla.net.config import NetConfig
from ottla.net.security_config import SecurityConfig
from ottla.share.config import ShareConfig
from ottla.storage.config import LogConfig
from ottla.transactions.config import TransactionConfig

_PARTITIONS_ALONE: Final = 1
_PARTITIONS_IN_A_CLUSTER: Final = 12
"""Partitions of each internal topic. They can be spread over as many leaders, and 12 is divisible by 2, 3, 4 and 6."""


class Settings(NamedTuple):
    broker: BrokerConfig = BrokerConfig()
    net: NetConfig = NetConfig()
    log: LogConfig = LogConfig()
    groups: GroupConfig = GroupConfig()
    transactions: TransactionConfig = TransactionConfig()
    share: ShareConfig = ShareConfig()
    encryption: EncryptionConfig = EncryptionConfig()
    security: SecurityConfig = SecurityConfig()
    tracing: TracingConfig = TracingConfig()
    cluster: ClusterConfig = ClusterConfig()
    replication: ReplicationConfig = ReplicationConfig()

    def completed(self, *, is_member: bool) -> Settings:
        """The settings with default partition counts filled in for internal topics."""
        usual = _PARTITIONS_IN_A_CLUSTER if is_member else _PARTITIONS_ALONE
        broker, transactions, share = self.broker, self.transactions, self.share
        return self._replace(
            broker=replace(broker, offsets_topic_partitions=broker.offsets_topic_partitions or usual),
            transactions=replace(transactions, state_topic_partitions=transactions.state_topic_partitions or usual),
            share=replace(share, state_topic_partitions=share.state_topic_partitions or usual),
        )
