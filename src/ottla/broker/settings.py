"""All that a broker is configured with, one section each."""

from __future__ import annotations

from typing import NamedTuple

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
